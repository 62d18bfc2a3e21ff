import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { pseudoRandomBytes } from '../support/bytes.ts';
import { type ClientFolder, clientFolder } from '../support/client-folder.ts';
import { succeed } from '../support/command.ts';
import { shows } from '../support/compatibility.ts';
import { effort } from '../support/effort.ts';
import { ODD_NAMES } from '../support/odd-names.ts';
import { temporaryDirectory } from '../support/program.ts';

// webdavclient3 is the client of many programs written in Python.

const LARGE = pseudoRandomBytes(effort(10) * 2 ** 20 + 1, 15);
// It does not list names that begin with `#`.
const NAMES = [...ODD_NAMES, `a #?%41 ü & '`, 'party 🎉'];

let local: Awaited<ReturnType<typeof temporaryDirectory>>;
let folder: ClientFolder;

beforeAll(async () => {
  [local, folder] = await Promise.all([temporaryDirectory(), clientFolder('python')]);
});
afterAll(() => local.remove());

/** Runs a program in Debian's Python, whose package it is, with `client`, and with `names` and `folder` for files here. Returns what it passes to `tell`. */
async function python(program: string): Promise<unknown> {
  const { user, password } = folder;
  const { origin, pathname } = new URL(folder.url);
  // With a path in the address of the host, it lists each folder as a member of itself.
  const options = {
    ...{ webdav_hostname: origin, webdav_root: pathname },
    ...{ webdav_login: user, webdav_password: password },
  };
  const input = `
import concurrent.futures, io, json
from webdav3.client import Client
options, names = json.loads(${JSON.stringify(JSON.stringify([options, NAMES]))})
client = Client(options)
told = None
def tell(value):
    global told
    told = value
${program}
print(json.dumps(told))
`;
  const { stdout } = await succeed('/usr/bin/python3', ['-'], { input, directory: local.path });
  return JSON.parse(stdout);
}

describe('webdavclient3 of Python', () => {
  test(
    'upload_sync sends a file of several blocks, info tells its size, and download_sync gets it byte for byte',
    shows('python', 'list', 'read', 'write', 'large file'),
    async () => {
      await writeFile(join(local.path, 'large'), LARGE);
      const told = await python(`
client.upload_sync('large.bin', 'large')
client.download_sync('large.bin', 'back')
tell([client.list(), client.info('large.bin')['size'], client.is_dir('large.bin'), client.check('missing')])`);
      expect(told).toEqual([expect.arrayContaining(['large.bin']), String(LARGE.length), false, false]);
      expect((await folder.read('large.bin'))?.equals(LARGE)).toBe(true);
      expect((await readFile(join(local.path, 'back'))).equals(LARGE)).toBe(true);
    },
  );

  test('upload_to replaces the content of a file', shows('python', 'overwrite'), async () => {
    await python(`
for text in [b'a longer first text', b'second']: client.upload_to(io.BytesIO(text), 'replaced')`);
    expect(String(await folder.read('replaced'))).toBe('second');
  });

  test(
    'mkdir, move, copy and clean make a folder, rename, move and copy a file, and remove both',
    shows('python', 'rename', 'move', 'copy', 'delete'),
    async () => {
      const told = await python(`
client.mkdir('sub')
client.upload_to(io.BytesIO(b'content'), 'file')
client.move('file', 'renamed')
client.move('renamed', 'sub/moved')
client.copy('sub/moved', 'sub/copied')
client.copy('sub/', 'whole/', depth='infinity')
before = [client.list('sub'), client.list('whole')]
client.clean('sub/moved')
client.clean('whole')
tell(before + [client.list('sub'), client.check('whole')])`);
      const both = ['copied', 'moved'];
      expect(told).toEqual([
        expect.arrayContaining(both),
        expect.arrayContaining(both),
        expect.not.arrayContaining(['moved']),
        false,
      ]);
      expect(String(await folder.read('sub/copied'))).toBe('content');
    },
  );

  test(
    'files with odd names are sent, listed, read, moved and removed',
    shows('python', 'odd names'),
    async () => {
      const told = await python(`
client.mkdir('odd')
for name in names: client.upload_to(io.BytesIO(name.encode()), 'odd/' + name)
listed = client.list('odd')
texts = []
for name in names:
    text = io.BytesIO()
    client.download_from(text, 'odd/' + name)
    texts.append(text.getvalue().decode())
    client.move('odd/' + name, 'odd/new ' + name)
renamed = client.list('odd')
for name in names: client.clean('odd/new ' + name)
tell([sorted(listed), texts, sorted(renamed), client.list('odd')])`);
      expect(told).toEqual([[...NAMES].sort(), NAMES, NAMES.map((name) => `new ${name}`).sort(), []]);
    },
  );

  test('a property that is set is read', shows('python', 'properties'), async () => {
    const told = await python(`
client.upload_to(io.BytesIO(b'content'), 'file')
property = {'namespace': 'urn:example', 'name': 'colour'}
client.set_property('file', {**property, 'value': 'rather blue'})
tell(client.get_property('file', property))`);
    expect(told).toBe('rather blue');
  });

  test('eight uploads at the same time leave eight whole files', shows('python', 'two at once'), async () => {
    const content = pseudoRandomBytes(300_000, 16);
    await writeFile(join(local.path, 'content'), content);
    await python(`
with concurrent.futures.ThreadPoolExecutor(8) as pool:
    list(pool.map(lambda n: Client(options).upload_sync('at once %d' % n, 'content'), range(8)))`);
    for (let count = 0; count < 8; count++)
      expect((await folder.read(`at once ${count}`))?.equals(content)).toBe(true);
  });
});
