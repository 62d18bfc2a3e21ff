import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { PROJECT_ROOT } from '../support/build.ts';
import { CLIENTS, type ClientName, OPERATIONS, type Operation } from '../support/compatibility.ts';

const OPERATION_NAMES = Object.keys(OPERATIONS) as Operation[]; // its keys are the operations
const CLIENT_NAMES = Object.keys(CLIENTS) as ClientName[]; // its keys are the clients

/** Returns what the calls of `shows` in the tests with real clients say, as `client: operation`. */
function shown(): ReadonlySet<string> {
  const files = ['test/clients', 'test/long'].flatMap((folder) =>
    readdirSync(join(PROJECT_ROOT, folder)).map((name) => join(PROJECT_ROOT, folder, name)),
  );
  const calls = files.flatMap((file) => [...readFileSync(file, 'utf8').matchAll(/\bshows\(([^)]*)\)/g)]);
  const words = calls.map(([, list = '']) => [...list.matchAll(/'([^']*)'/g)].map(([, word]) => word));
  return new Set(
    words.flatMap(([client, ...operations]) => operations.map((operation) => `${client}: ${operation}`)),
  );
}

function isWithout(client: ClientName, operation: Operation): boolean {
  const without: readonly Operation[] = CLIENTS[client].without;
  return without.includes(operation);
}

test('every operation of a client in the compatibility table is shown by a test, or is one that the client is without', () => {
  const tested = shown();
  const both = CLIENT_NAMES.flatMap((client) =>
    OPERATION_NAMES.map((operation) => ({
      cell: `${client}: ${operation}`,
      tested: tested.has(`${client}: ${operation}`),
      without: isWithout(client, operation),
    })),
  );
  expect(both.filter((cell) => cell.tested === cell.without)).toEqual([]);
});

test('the table in docs/compatibility.md has what the tests with real clients show', async () => {
  const row = (...cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  const rows = CLIENT_NAMES.map((client) =>
    row(
      CLIENTS[client].title,
      ...OPERATION_NAMES.map((operation) => (isWithout(client, operation) ? '–' : 'yes')),
    ),
  );
  const text = `# Which clients work

Each "yes" is shown by a test that runs the program against davgate; with "–" the program does not have the operation, or no test
tries it. The programs are those of Debian 12. Finder, Explorer and Office run on no Linux machine: their
requests are replayed in the tests, and [macOS](mount/macos.md) and [Windows](mount/windows.md) say how to use them.

${row('client', ...OPERATION_NAMES)}
${row('---', ...OPERATION_NAMES.map(() => '---'))}
${rows.join('\n')}

What the columns mean:

${OPERATION_NAMES.map((operation) => `- ${operation}: ${OPERATIONS[operation]}`).join('\n')}

## What these programs do otherwise than you may expect

- davix 0.8.4: \`--userlogin\` does not work over \`http://\`, nor with other servers; \`--header "Authorization: Basic …"\` does.
  \`davix-mv\` ends with 255 when it has moved the file, and prints nothing; it prints a message when it has not.
- gvfs: \`gio mkdir -p\` makes only the last folder of a path. \`gio list\` needs \`--hidden\` to show names with a dot at the beginning.
- lftp lists folders by their HTML pages. Leave \`http:use-propfind\` at \`no\`: with it lftp 4.9 sends a broken PROPPATCH after each
  upload. Modification times are kept without it.
- rclone: a mount shows what others change after \`--dir-cache-time\`, but up to a minute late for a file that it has written itself.
- npm \`webdav\`: \`getQuota()\` returns \`null\`, because it asks for no property by name (RFC 4331 §3); pass the properties as \`data\`.

## Programs on a drive

Tests also show that these work: git (push, clone and \`fsck\` of a bare repository) and SQLite on a davfs2 mount, random reads,
writes and truncations of one file on an rclone mount with \`--vfs-cache-mode writes\`, restic through rclone (backup, prune,
\`check --read-data\`, restore), and duplicity with \`webdav://\` (backup, increment, verify, restore). SQLite waits for several
uploads at each commit on a davfs2 mount, so keep busy databases elsewhere.
`;
  await expect(text).toMatchFileSnapshot('../../docs/compatibility.md');
});
