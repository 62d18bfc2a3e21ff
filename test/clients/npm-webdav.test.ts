import type { Readable, Writable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { beforeAll, describe, expect, test } from 'vitest';
import { createClient, type FileStat, type WebDAVClient } from 'webdav';
import { bodyOf, pseudoRandomBytes } from '../support/bytes.ts';
import { type ClientFolder, clientFolder } from '../support/client-folder.ts';
import { shows } from '../support/compatibility.ts';
import { effort } from '../support/effort.ts';
import { eventually } from '../support/eventually.ts';
import { ODD_NAMES } from '../support/odd-names.ts';

// The npm package `webdav` is the client in many programs written in JavaScript.

const LARGE = pseudoRandomBytes(effort(10) * 2 ** 20 + 1, 14);
const NAMES = [...ODD_NAMES, `#?%41 ü & '`, 'party 🎉'];

let folder: ClientFolder;
let client: WebDAVClient;

beforeAll(async () => {
  folder = await clientFolder('npm-webdav');
  client = createClient(folder.url, { username: folder.user, password: folder.password });
});

/** Reads a file, or a part of it, through a stream: in Node, the package's streams are those of Node. */
function read(path: string, range?: { readonly start: number; readonly end: number }): Promise<Buffer> {
  return buffer(client.createReadStream(path, { ...(range && { range }) }) as Readable);
}

/** Returns the names in a folder and below. */
async function listed(path: string, deep = false): Promise<string[]> {
  const found = (await client.getDirectoryContents(path, { deep })) as FileStat[]; // without `details`: a list
  return found.map(({ filename }) => filename.slice(path.length + 1)).sort();
}

describe('the npm package webdav', () => {
  test(
    'a file of several blocks is put, listed with its size, and read whole and in a range',
    shows('webdav', 'list', 'read', 'range', 'write', 'large file'),
    async () => {
      expect(await client.putFileContents('/large', LARGE)).toBe(true);
      expect((await folder.read('large'))?.equals(LARGE)).toBe(true);
      expect(await client.stat('/large')).toMatchObject({ type: 'file', size: LARGE.length });
      const range = { start: 5_000_000, end: 5_000_999 };
      const part = await read('/large', range);
      expect(part.equals(LARGE.subarray(5_000_000, 5_001_000))).toBe(true);
      expect((await read('/large')).equals(LARGE)).toBe(true);
      expect(await listed('')).toContain('large');
    },
  );

  test('a stream of unknown length is stored whole', async () => {
    await pipeline(bodyOf(LARGE, 100_000), client.createWriteStream('/streamed') as Writable);
    // The end of the stream is before the answer.
    await eventually(async () => expect((await folder.read('streamed'))?.equals(LARGE)).toBe(true));
  });

  test('a file is replaced, and with overwrite: false it is kept', shows('webdav', 'overwrite'), async () => {
    await client.putFileContents('/text', 'a longer first text');
    await client.putFileContents('/text', 'second');
    expect(await client.putFileContents('/text', 'third', { overwrite: false })).toBe(false);
    expect(await client.getFileContents('/text', { format: 'text' })).toBe('second');
  });

  test(
    'folders are made, files are renamed, moved, copied and deleted, and a deep listing shows the tree',
    shows('webdav', 'rename', 'move', 'copy', 'delete'),
    async () => {
      await client.createDirectory('/tree/one/two', { recursive: true });
      await client.putFileContents('/tree/file', 'content');
      await client.moveFile('/tree/file', '/tree/renamed');
      await client.moveFile('/tree/renamed', '/tree/one/two/moved');
      await client.copyFile('/tree/one', '/tree/copied');
      expect(await listed('/tree', true)).toEqual(
        ['copied', 'copied/two', 'copied/two/moved', 'one', 'one/two', 'one/two/moved'].sort(),
      );
      expect(String(await folder.read('tree/copied/two/moved'))).toBe('content');
      await client.deleteFile('/tree/one');
      expect(await client.exists('/tree/one')).toBe(false);
      expect(await client.exists('/tree/copied')).toBe(true);
    },
  );

  test(
    'files with odd names are put, listed, read, moved and deleted',
    shows('webdav', 'odd names'),
    async () => {
      await client.createDirectory('/odd');
      for (const name of NAMES) await client.putFileContents(`/odd/${name}`, name);
      expect(await listed('/odd')).toEqual([...NAMES].sort());
      for (const name of NAMES) {
        expect(await client.getFileContents(`/odd/${name}`, { format: 'text' })).toBe(name);
        await client.moveFile(`/odd/${name}`, `/odd/new ${name}`);
      }
      expect(await listed('/odd')).toEqual(NAMES.map((name) => `new ${name}`).sort());
      for (const name of NAMES) await client.deleteFile(`/odd/new ${name}`);
      expect(await listed('/odd')).toEqual([]);
    },
  );

  test(
    'a locked file is written with the token of its lock alone, and by everybody when it is unlocked',
    shows('webdav', 'lock'),
    async () => {
      await client.putFileContents('/locked', 'before');
      const { token } = await client.lock('/locked', { timeout: 'Second-600' });
      await expect(client.putFileContents('/locked', 'refused')).rejects.toThrow(/423/);
      await client.putFileContents('/locked', 'with its token', { headers: { If: `(<${token}>)` } });
      expect(String(await folder.read('locked'))).toBe('with its token');
      await client.unlock('/locked', token);
      await client.putFileContents('/locked', 'after');
      expect(String(await folder.read('locked'))).toBe('after');
    },
  );

  test('a property is set, and shown by stat', shows('webdav', 'properties'), async () => {
    await client.putFileContents('/described', 'x');
    const data = `<D:propertyupdate xmlns:D="DAV:" xmlns:e="urn:example"><D:set><D:prop><e:colour>rather blue</e:colour>
      </D:prop></D:set></D:propertyupdate>`;
    expect((await client.customRequest('/described', { method: 'PROPPATCH', data })).status).toBe(207);
    const names =
      '<D:propfind xmlns:D="DAV:"><D:prop><e:colour xmlns:e="urn:example"/></D:prop></D:propfind>';
    const shown = await client.stat('/described', { details: true, data: names });
    expect(shown).toMatchObject({ data: { props: { colour: 'rather blue' } } });
  });

  test('the space of the drive is shown to getQuota when it names the properties', async () => {
    // RFC 4331 §3: they are not part of the answer to a request that names none.
    const data =
      '<D:propfind xmlns:D="DAV:"><D:prop><D:quota-available-bytes/><D:quota-used-bytes/></D:prop></D:propfind>';
    const quota = (await client.getQuota({ data })) as { used: number; available: number }; // without `details`
    expect(quota.used).toBeGreaterThan(LARGE.length);
    expect(quota.available).toBeGreaterThan(0);
  });

  test('search finds a file below a folder by a part of its name', async () => {
    await client.createDirectory('/searched/below', { recursive: true });
    for (const name of ['/searched/below/needle.txt', '/searched/hay.txt'])
      await client.putFileContents(name, name);
    const found = await client.search('/searched', {
      data: `<D:searchrequest xmlns:D="DAV:"><D:basicsearch><D:select><D:allprop/></D:select>
        <D:from><D:scope><D:href>${new URL('searched/', folder.url).pathname}</D:href><D:depth>infinity</D:depth></D:scope></D:from>
        <D:where><D:like><D:prop><D:displayname/></D:prop><D:literal>%needle%</D:literal></D:like></D:where>
        </D:basicsearch></D:searchrequest>`,
    });
    expect(found).toMatchObject({ results: [{ basename: 'needle.txt', type: 'file' }] });
  });

  test('a partial update appends to a file, and is refused before the end', async () => {
    await client.putFileContents('/appended', 'first');
    await client.partialUpdateFileContents('/appended', 5, 9, ' more');
    expect(String(await folder.read('appended'))).toBe('first more');
    await expect(client.partialUpdateFileContents('/appended', 0, 4, 'other')).rejects.toThrow(/416/);
    expect(String(await folder.read('appended'))).toBe('first more');
  });

  test(
    'twenty files put, moved and read at the same time are whole',
    shows('webdav', 'two at once'),
    async () => {
      await client.createDirectory('/at once');
      await Promise.all(
        Array.from({ length: 20 }, async (_, index) => {
          const content = pseudoRandomBytes(100_000, index);
          await client.putFileContents(`/at once/${index}`, content);
          await client.moveFile(`/at once/${index}`, `/at once/moved ${index}`);
          const back = await read(`/at once/moved ${index}`);
          expect(back.equals(content)).toBe(true);
        }),
      );
      expect((await listed('/at once')).length).toBe(20);
    },
  );
});
