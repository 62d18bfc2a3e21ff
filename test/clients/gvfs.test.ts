import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { pseudoRandomBytes } from '../support/bytes.ts';
import { type ClientFolder, clientFolder } from '../support/client-folder.ts';
import { type CommandResult, succeed } from '../support/command.ts';
import { shows } from '../support/compatibility.ts';
import { type DesktopSession, startDesktopSession } from '../support/desktop-session.ts';
import { effort } from '../support/effort.ts';
import { ODD_NAMES } from '../support/odd-names.ts';
import { temporaryDirectory } from '../support/program.ts';

// gvfs is what GNOME's and other file managers mount drives with. `gio` is its command.

const LARGE = pseudoRandomBytes(effort(10) * 2 ** 20 + 1, 11);
const NAMES = [...ODD_NAMES, `#?%41 ü & '`, 'party 🎉', 'Ä'.normalize('NFD')];

let local: Awaited<ReturnType<typeof temporaryDirectory>>;
let folder: ClientFolder;
let session: DesktopSession;

beforeAll(async () => {
  [local, folder] = await Promise.all([temporaryDirectory(), clientFolder('gvfs')]);
  session = await startDesktopSession(local.path);
  const { environment } = session;
  const root = new URL('/', dav('')).href;
  await succeed('gio', ['mount', root], { environment, input: `${folder.password}\n` });
});
afterAll(async () => {
  await session?.end();
  await local.remove();
});

/** Returns gvfs's address of a file in the folder. */
function dav(path: string): string {
  return folder.at(path).replace('http://', `dav://${folder.user}@`);
}

function gio(...args: readonly string[]): Promise<CommandResult> {
  return succeed('gio', args, { environment: session.environment });
}

/** Returns the decoded names that `gio list` shows. */
async function listed(path = ''): Promise<string[]> {
  const { stdout } = await gio('list', '--hidden', '-u', dav(path));
  return stdout
    .split('\n')
    .filter(Boolean)
    .map((url) => decodeURIComponent(url.slice(url.lastIndexOf('/') + 1)));
}

/** Writes a local file; resolves with its path. */
async function localFile(name: string, content: string | Buffer): Promise<string> {
  const path = join(local.path, name);
  await writeFile(path, content);
  return path;
}

describe('gvfs', () => {
  test(
    'gio copy sends a file of several blocks to the drive, gio list -l shows its size, and gio copy gets it byte for byte',
    shows('gvfs', 'list', 'read', 'write', 'large file'),
    async () => {
      await gio('copy', await localFile('large', LARGE), dav('large.bin'));
      expect((await folder.read('large.bin'))?.equals(LARGE)).toBe(true);
      const { stdout } = await gio('list', '-l', dav(''));
      expect(stdout).toContain(`large.bin\t${LARGE.length}\t(regular)`);
      await gio('copy', dav('large.bin'), join(local.path, 'back'));
      expect((await readFile(join(local.path, 'back'))).equals(LARGE)).toBe(true);
    },
  );

  test('gio save and gio copy replace the content of a file', shows('gvfs', 'overwrite'), async () => {
    const { environment } = session;
    for (const text of ['first', 'a longer second text'])
      await succeed('gio', ['save', dav('saved')], { environment, input: text });
    expect(String(await folder.read('saved'))).toBe('a longer second text');
    await gio('copy', await localFile('third', 'third'), dav('saved'));
    expect((await gio('cat', dav('saved'))).stdout).toBe('third');
  });

  test(
    'gio mkdir, rename, move, copy and remove do so on the drive',
    shows('gvfs', 'rename', 'move', 'copy', 'delete'),
    async () => {
      // `gio mkdir -p` fails with every server: gvfs takes a 409 for another trouble than a missing folder.
      await gio('mkdir', dav('one'));
      await gio('mkdir', dav('one/two'));
      await gio('copy', await localFile('file', 'content'), dav('one/file'));
      await gio('rename', dav('one/file'), 'renamed');
      await gio('move', dav('one/renamed'), dav('one/two/moved'));
      await gio('copy', dav('one/two/moved'), dav('one/copied'));
      expect((await listed('one')).sort()).toEqual(['copied', 'two']);
      expect(String(await folder.read('one/copied'))).toBe('content');
      await gio('move', dav('one/two'), dav('three'));
      expect(String(await folder.read('three/moved'))).toBe('content');
      await gio('remove', dav('three/moved'), dav('three'));
      await gio('remove', dav('one/copied'));
      expect(await listed('one')).toEqual([]);
      expect(await folder.read('three/moved')).toBeUndefined();
    },
  );

  test('gio info shows the creation date that another client has set, and reads a file whose name is not UTF-8', async () => {
    const body =
      '<D:propertyupdate xmlns:D="DAV:"><D:set><D:prop><D:creationdate>2000-01-01T00:00:00Z</D:creationdate></D:prop></D:set></D:propertyupdate>';
    const address = `${folder.at('bytes/caf')}%E9`;
    const headers = { authorization: folder.authorization };
    await gio('mkdir', dav('bytes'));
    expect((await fetch(address, { method: 'PUT', headers, body: 'latin1' })).status).toBe(201);
    expect((await fetch(address, { method: 'PROPPATCH', headers, body })).status).toBe(207);
    const shown = `${dav('bytes/caf')}%E9`;
    expect((await gio('info', '-a', 'time::created', shown)).stdout).toMatch(/time::created: 946684800\n/);
    expect((await gio('cat', shown)).stdout).toBe('latin1');
    expect((await gio('list', '-u', dav('bytes'))).stdout).toMatch(/\/caf%E9\n/);
  });

  test('gio info shows the size, the type and the time of a file, and the space of the drive', async () => {
    await gio('copy', await localFile('info.txt', 'twelve bytes'), dav('info.txt'));
    const { stdout } = await gio('info', dav('info.txt'));
    expect(stdout).toMatch(/standard::content-type: text\/plain/);
    expect(stdout).toMatch(/standard::size: 12\n/);
    expect(Math.abs(Number(/time::modified: (\d+)/.exec(stdout)?.[1]) * 1000 - Date.now())).toBeLessThan(
      86_400_000,
    );
    const space = (await gio('info', '-f', dav(''))).stdout;
    expect(Number(/filesystem::free: (\d+)/.exec(space)?.[1])).toBeGreaterThan(0);
    expect(Number(/filesystem::used: (\d+)/.exec(space)?.[1])).toBeGreaterThan(0);
  });

  test(
    'files with odd names are copied to the drive, listed, read, renamed and removed by gio',
    shows('gvfs', 'odd names'),
    async () => {
      const source = join(local.path, 'odd');
      await mkdir(source);
      for (const name of NAMES) await writeFile(join(source, name), name);
      await gio('mkdir', dav('odd'));
      await gio('copy', ...NAMES.map((name) => join(source, name)), dav('odd'));
      const shown = NAMES.map((name) => name.normalize('NFC')).sort();
      expect((await listed('odd')).sort()).toEqual(shown);
      const { stdout } = await gio('cat', ...shown.map((name) => dav(`odd/${name}`)));
      expect(stdout.normalize('NFC')).toBe(shown.join(''));
      for (const name of shown) await gio('rename', dav(`odd/${name}`), `new ${name}`);
      expect((await listed('odd')).sort()).toEqual(shown.map((name) => `new ${name}`).sort());
      await gio('remove', ...shown.map((name) => dav(`odd/new ${name}`)));
      expect(await listed('odd')).toEqual([]);
    },
  );

  test('eight gio copy at the same time leave eight whole files', shows('gvfs', 'two at once'), async () => {
    const names = Array.from({ length: 8 }, (_, index) => `at once ${index}`);
    const content = (name: string) => pseudoRandomBytes(300_000, name.length + Number(name.at(-1)));
    await Promise.all(
      names.map(async (name) => gio('copy', await localFile(name, content(name)), dav(name))),
    );
    for (const name of names) expect((await folder.read(name))?.equals(content(name))).toBe(true);
    expect(await listed()).toEqual(expect.arrayContaining(names));
  });

  test('gio fails with the reason for a missing file, a folder that is not empty and a taken name', async () => {
    await gio('mkdir', dav('full'));
    await gio('copy', await localFile('inside', 'x'), dav('full/inside'));
    await expect(gio('cat', dav('missing'))).rejects.toThrow(/not found|No such/i);
    await expect(gio('mkdir', dav('full'))).rejects.toThrow(/exists/);
    await expect(gio('rename', dav('full/inside'), '')).rejects.toThrow();
    expect(String(await folder.read('full/inside'))).toBe('x');
  });
});
