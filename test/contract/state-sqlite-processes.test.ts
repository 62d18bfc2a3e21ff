import { spawn, spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { StateInUse } from '../../src/state/errors.ts';
import { openSqliteState } from '../../src/state/sqlite/state.ts';
import type { DriveState } from '../../src/state/state.ts';
import { builtUrl } from '../support/build.ts';
import { effort } from '../support/effort.ts';
import { path } from '../support/paths.ts';

/** Creates locks, properties and local files without end, and prints each one that was acknowledged. */
const WRITER = `
const [url, directory, round] = process.argv.slice(1);
const { openSqliteState } = await import(url);
const { locks, properties, localFiles } = openSqliteState({ directory }).drive('d');
const say = (what, number) => process.stdout.write(what + ' ' + round + '-' + number + '\\n');
async function write(number) {
  const name = round + '-' + number;
  const lock = {
    token: 'urn:' + name, root: '/' + name, scope: 'exclusive', depth: 'infinity', ownerXml: '',
    principal: 'ann', timeoutSeconds: 60, expiresMs: 60_000,
  };
  await locks.create(0, lock);
  say('lock', number);
  await properties.change('id:' + name, [{ set: { namespace: 'urn:n', name: 'p', xml: '<p/>' } }]);
  say('property', number);
  const content = Buffer.alloc(20_000, name);
  const file = { path: '/._' + name, id: name, rev: 'r', modifiedMs: 1, sizeBytes: content.length };
  await localFiles.put(file, content);
  say('aside', number);
}
for (let number = 0; ; number += 4)
  await Promise.all([0, 1, 2, 3].map((offset) => write(number + offset)));
`;

const ROUNDS = effort(3);

let directory: string;

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'davgate-killed-'));
});

afterAll(() => {
  rmSync(directory, { recursive: true });
});

/** Returns the lines that a writer printed before it was killed, which is after `lines` of them. */
async function acknowledged(round: number, lines: number): Promise<string[]> {
  const writer = spawn(
    process.execPath,
    ['--input-type=module', '-e', WRITER, builtUrl('state/sqlite/state.ts'), directory, String(round)],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  const said: string[] = [];
  for await (const line of createInterface({ input: writer.stdout })) {
    if (said.push(line) === 1) expect(() => openSqliteState({ directory })).toThrow(StateInUse);
    if (said.length === lines) writer.kill('SIGKILL');
  }
  return said;
}

/** Returns the lines of `said` whose change is missing. */
async function missing(
  { locks, properties, localFiles }: DriveState,
  said: readonly string[],
): Promise<string[]> {
  const tokens = new Set((await locks.all(0)).map((lock) => lock.token));
  const isThere: Record<string, (name: string) => Promise<boolean>> = {
    lock: async (name) => tokens.has(`urn:${name}`),
    property: async (name) => (await properties.of([`id:${name}`])).size === 1,
    aside: async (name) => {
      const content = await localFiles.read(path(`/._${name}`));
      return content !== undefined && Buffer.alloc(20_000, name).equals(content);
    },
  };
  const lost: string[] = [];
  for (const line of said) {
    const [what = '', name = ''] = line.split(' ');
    if (!(await isThere[what]?.(name))) lost.push(line);
  }
  return lost;
}

test('every change that was acknowledged before a kill is there after it', async () => {
  const said: string[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    said.push(...(await acknowledged(round, 30 + 37 * (round % 8))));
    const state = openSqliteState({ directory });
    expect(await missing(state.drive('d'), said)).toEqual([]);
    await state.close();
  }
  expect(said.length).toBeGreaterThan(ROUNDS * 30);
});

/** Returns the error of `openSqliteState` for a user without root's rights. */
function refusal(unusable: string): string {
  const script =
    'const [url, directory] = process.argv.slice(1); const { openSqliteState } = await import(url);' +
    'await openSqliteState({ directory: directory + "-before" }).close();' +
    'if (process.getuid?.() === 0) { process.setgid(65534); process.setuid(65534); }' +
    'try { openSqliteState({ directory }); } catch (error) { console.log(error.name, error.message); }';
  // The child drops its rights after loading its code, which may be in a folder that only root can read.
  const child = spawnSync(
    process.execPath,
    ['--input-type=module', '-e', script, builtUrl('state/sqlite/state.ts'), unusable],
    {
      encoding: 'utf8',
    },
  );
  return child.stdout + child.stderr;
}

test('a directory that this user cannot write is refused with its path', () => {
  chmodSync(directory, 0o755);
  const closed = join(directory, 'closed');
  mkdirSync(closed, { mode: 0o555 });
  expect(refusal(closed)).toMatch(
    `StateUnwritable cannot keep state in ${closed}: state.db cannot be opened`,
  );
  expect(refusal(join(closed, 'below'))).toMatch(/StateUnwritable .*this user may not write there/);
  const readOnly = join(directory, 'read-only');
  mkdirSync(readOnly);
  writeFileSync(join(readOnly, 'state.db'), '', { mode: 0o444 });
  chmodSync(readOnly, 0o777);
  expect(refusal(readOnly)).toMatch(/StateUnwritable .*state.db cannot be written; check its owner/);
});
