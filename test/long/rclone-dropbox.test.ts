import { mkdir, open, readdir, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { pseudoRandomBytes } from '../support/bytes.ts';
import { type DropboxHosts, playDropboxHosts } from '../support/dropbox-hosts.ts';
import { effort } from '../support/effort.ts';
import { eventually } from '../support/eventually.ts';
import { GatewayClient, startTestGateway } from '../support/gateway.ts';
import { type ServiceProgram, startServiceProgram, temporaryDirectory } from '../support/program.ts';
import { configureDropboxRclone, type Rclone } from '../support/rclone.ts';
import { syncTwice } from '../support/rclone-sync.ts';
import { digestTree } from '../support/trees.ts';

const MIB = 1024 * 1024;

/** Size of the parts in which rclone sends a large file, in MiB: two blocks, and rclone's default of 48 in a long run. */
const PART_MIB = Math.min(48, effort(8));
const PART_BYTES = PART_MIB * MIB;
/** Size of a file of several parts, the last one short. */
const LARGE_BYTES = 3 * PART_BYTES + 2 * MIB;
/** Sizes around the service's block and around rclone's part, and one of several parts. */
const SIZES = [0, 1, 4 * MIB - 1, 4 * MIB, 4 * MIB + 1, PART_BYTES, LARGE_BYTES];
/** Number of files in the deepest folder. */
const DEEP_FILES = 20;
/** Number of small files that each mode of rclone's batches sends. */
const SMALL_FILES = effort(60);

let service: ServiceProgram;
let hosts: DropboxHosts;
let rclone: Rclone;
let data: Awaited<ReturnType<typeof temporaryDirectory>>;
let local: Awaited<ReturnType<typeof temporaryDirectory>>;
let source: string;

beforeAll(async () => {
  [data, local] = await Promise.all([temporaryDirectory(), temporaryDirectory()]);
  service = await startServiceProgram(data.path);
  hosts = await playDropboxHosts(service.url);
  rclone = await configureDropboxRclone(service, hosts.environment, PART_MIB);
  source = join(local.path, 'source');
  await mkdir(join(source, 'sub folder/deeper'), { recursive: true });
  for (const size of SIZES)
    await writeFile(join(source, `${size} bytes`), pseudoRandomBytes(size, size % 97));
  for (let index = 0; index < DEEP_FILES; index++)
    await writeFile(join(source, 'sub folder/deeper', `#${index} % & ü 😀.txt`), `content of ${index}`);
  await rclone.run('copy', source, 'drive:copied');
});
afterAll(async () => {
  await rclone?.remove();
  await hosts?.close();
  await service?.stop();
  await Promise.all([data.remove(), local.remove()]);
});

/** Returns the calls since `before` that the service accepted, by function. */
function callsSince(before: ReadonlyMap<string, number>): Map<string, number> {
  const made = [...hosts.traffic.acceptedCalls].map(
    ([name, count]) => [name, count - (before.get(name) ?? 0)] as const,
  );
  return new Map(made.filter(([, count]) => count > 0));
}

const lines = (text: string) => text.trim().split('\n').sort();

describe("rclone's Dropbox backend on the service", () => {
  test('rclone check and check --download find the same hashes and bytes after a copy to the service', async () => {
    await rclone.run('check', source, 'drive:copied');
    await rclone.run('check', '--download', source, 'drive:copied');
  });

  test('rclone sends a file of several parts as an upload session with one append for each part', async () => {
    const before = new Map(hosts.traffic.acceptedCalls);
    await rclone.run(
      'copyto',
      join(source, `${LARGE_BYTES} bytes`),
      'drive:in chunks',
      '--dropbox-batch-mode',
      'off',
    );
    const calls = callsSince(before);
    expect(calls.get('files/upload_session/start')).toBe(1);
    expect(calls.get('files/upload_session/append_v2')).toBe(Math.ceil(LARGE_BYTES / PART_BYTES));
    expect(calls.get('files/upload_session/finish')).toBe(1);
    expect(calls.has('files/upload')).toBe(false);
    await rclone.run('deletefile', 'drive:in chunks');
  });

  test('rclone copy from the service gives the same bytes and modification times', async () => {
    const back = join(local.path, 'back');
    await rclone.run('copy', 'drive:copied', back);
    expect(await digestTree(back)).toEqual(await digestTree(source));
    const [ours, theirs] = await Promise.all([stat(join(source, '1 bytes')), stat(join(back, '1 bytes'))]);
    // rclone rounds to the second, because the service stores whole seconds.
    expect(Math.abs(theirs.mtimeMs - ours.mtimeMs)).toBeLessThanOrEqual(500);
  });

  test('a second rclone copy of an unchanged tree to the service uploads nothing', async () => {
    const before = new Map(hosts.traffic.acceptedCalls);
    await rclone.run('copy', source, 'drive:copied');
    expect([...callsSince(before).keys()].filter((name) => name.includes('upload'))).toEqual([]);
  });

  test('rclone lsf -R lists every file below a folder of the service', async () => {
    const { stdout } = await rclone.run('lsf', '-R', '--files-only', 'drive:copied');
    const expected = (await readdir(source, { recursive: true, withFileTypes: true })).filter((e) =>
      e.isFile(),
    );
    expect(lines(stdout).length).toBe(expected.length);
    expect(lines(stdout)).toEqual([...(await digestTree(source)).keys()].sort());
  });

  test('rclone takes a path that begins with a slash from the root namespace', async () => {
    const { stdout } = await rclone.run('lsf', 'drive:/copied');
    expect(lines(stdout)).toContain('sub folder/');
  });

  test('rclone sync repeats changes, renames and deletions at the service', async () => {
    const listed = await syncTwice(rclone, join(local.path, 'changing'), '--track-renames');
    expect(listed).toEqual(['changes', 'comes', 'renamed']);
  });

  test('rclone copyto sends a new modification time of the same bytes to the service', async () => {
    const file = join(local.path, 'timed');
    await writeFile(file, 'the same bytes');
    await rclone.run('copyto', file, 'drive:timed');
    const time = new Date('2020-02-02T02:02:02Z');
    await utimes(file, time, time);
    await rclone.run('copyto', file, 'drive:timed');
    const { stdout } = await rclone.run('lsjson', 'drive:timed');
    expect(JSON.parse(stdout)).toMatchObject([{ ModTime: '2020-02-02T02:02:02Z' }]);
  });

  test('rclone move of a remote folder is one call of move_v2 and leaves no source folder', async () => {
    await rclone.run('copy', join(source, 'sub folder'), 'drive:to move');
    const before = new Map(hosts.traffic.acceptedCalls);
    await rclone.run('move', 'drive:to move', 'drive:moved here');
    expect(callsSince(before).get('files/move_v2')).toBe(1);
    await rclone.run('check', '--download', join(source, 'sub folder'), 'drive:moved here');
    await expect(rclone.run('lsf', 'drive:to move')).rejects.toThrow(/directory not found/);
  });

  test('rclone move of a local folder uploads its files and empties it', async () => {
    const leaving = join(local.path, 'leaving');
    await mkdir(leaving);
    await writeFile(join(leaving, 'a'), 'a');
    await rclone.run('move', leaving, 'drive:arrived');
    expect(await rclone.run('cat', 'drive:arrived/a')).toMatchObject({ stdout: 'a' });
    expect(await readdir(leaving)).toEqual([]);
  });

  test('rclone copyto within the service is one call of copy_v2 and downloads nothing', async () => {
    const before = new Map(hosts.traffic.acceptedCalls);
    await rclone.run('copyto', `drive:copied/${PART_BYTES} bytes`, 'drive:twin');
    const calls = callsSince(before);
    expect(calls.get('files/copy_v2')).toBe(1);
    expect(calls.has('files/download')).toBe(false);
    const twins = await rclone.run('hashsum', 'dropbox', 'drive:twin');
    const first = await rclone.run('hashsum', 'dropbox', `drive:copied/${PART_BYTES} bytes`);
    expect(twins.stdout.split(' ')[0]).toMatch(/^[0-9a-f]{64}$/);
    expect(twins.stdout.split(' ')[0]).toBe(first.stdout.split(' ')[0]);
  });

  test('rclone link makes one link for a path, shows it again, and fails for a missing path', async () => {
    const make = async (...args: string[]) => (await rclone.run('link', ...args)).stdout.trim();
    const link = await make('drive:copied/1 bytes');
    expect(await make('drive:copied/1 bytes')).toBe(link);
    const download = new URL(link);
    download.searchParams.set('dl', '1');
    const answer = await fetch(atService(download));
    expect(Buffer.from(await answer.arrayBuffer())).toEqual(await readFile(join(source, '1 bytes')));
    expect(await make('drive:copied/sub folder')).toMatch(/^https?:/);
    expect(await make('--expire', '1d', 'drive:copied/0 bytes')).toMatch(/^https?:/);
    await expect(rclone.run('link', 'drive:nothing here')).rejects.toThrow(/object not found|not_found/);
  });

  test('rclone about shows the used and free space of the account', async () => {
    const { stdout } = await rclone.run('about', '--json', 'drive:');
    const { total, used, free } = JSON.parse(stdout) as { total: number; used: number; free: number };
    expect(used).toBeGreaterThan(LARGE_BYTES);
    expect(free).toBe(total - used);
  });

  test('rclone rcat stores a stream of unknown length, and cat --offset reads a part of it', async () => {
    const text = Array.from({ length: 400_000 }, (_, line) => `line number ${line}\n`).join('');
    await rclone.pipe(text, 'rcat', 'drive:streamed');
    expect((await rclone.run('cat', 'drive:streamed')).stdout === text).toBe(true);
    const part = await rclone.run('cat', '--offset', '5000000', '--count', '100', 'drive:streamed');
    expect(part.stdout).toBe(text.slice(5_000_000, 5_000_100));
  });

  test('rclone mkdir accepts an existing folder, and rmdir removes a folder only when it is empty', async () => {
    await rclone.run('mkdir', 'drive:parent/child');
    await rclone.run('mkdir', 'drive:parent/child');
    await expect(rclone.run('rmdir', 'drive:parent')).rejects.toThrow(/not empty/);
    await rclone.run('rmdir', 'drive:parent/child');
    await rclone.run('rmdir', 'drive:parent');
    await expect(rclone.run('lsf', 'drive:parent')).rejects.toThrow(/directory not found/);
  });

  test('names that rclone encodes for the service come back unchanged', async () => {
    const odd = join(local.path, 'odd');
    await mkdir(odd);
    for (const name of [
      ' spaces ',
      'back\\slash',
      'del\u007f',
      '"quotes" <a>:|?*',
      'e\u0301 decomposed',
      '~$x',
      'dot.',
    ])
      await writeFile(join(odd, name), name);
    await rclone.run('copy', odd, 'drive:odd');
    await rclone.run('check', '--download', odd, 'drive:odd');
  });

  test('rclone and davgate show each other the same odd names', async () => {
    const names = ['back\\slash', 'del\u007f', 'full＼width', 'blank ', '␡', ' ␠ ␠'];
    const written = join(local.path, 'of rclone');
    await mkdir(written);
    for (const name of names) await writeFile(join(written, name), name);
    await rclone.run('copy', written, 'drive:of rclone');
    const gateway = await startTestGateway({ service });
    const client = new GatewayClient(gateway.url);
    try {
      for (const name of names) {
        expect((await client.send('GET', `/of rclone/${name}`)).body.toString()).toBe(name);
        const moved = { destination: `${gateway.url}/of%20davgate/${encodeURIComponent(name)}` };
        await client.send('MKCOL', '/of davgate');
        expect((await client.send('COPY', `/of rclone/${name}`, { headers: moved })).status).toBe(201);
      }
      await rclone.run('check', '--download', written, 'drive:of davgate');
    } finally {
      client.close();
      await gateway.close();
    }
  });

  test('rclone copy fails for a name that the service refuses, and stores the other files', async () => {
    const refused = join(local.path, 'refused');
    await mkdir(refused);
    for (const name of ['desktop.ini', 'fine']) await writeFile(join(refused, name), name);
    await expect(rclone.run('copy', refused, 'drive:refused')).rejects.toThrow(/is disallowed/);
    expect(lines((await rclone.run('lsf', 'drive:refused')).stdout)).toEqual(['fine']);
  });

  test('rclone refreshes an expired token and keeps the new one', async () => {
    const ended = { ...service, token: 'sl.ended', expiry: '2001-01-01T00:00:00Z' };
    const other = await configureDropboxRclone(ended, hosts.environment, PART_MIB);
    try {
      expect(lines((await other.run('lsf', 'drive:')).stdout)).toContain('copied/');
      expect(await other.configuration()).not.toContain('sl.ended');
    } finally {
      await other.remove();
    }
  });

  describe('mount', () => {
    test('reads at random offsets of a file in an rclone mount of the service give the right bytes', async () => {
      const size = PART_BYTES;
      const content = pseudoRandomBytes(size, size % 97);
      await rclone.run('copyto', join(source, `${size} bytes`), 'drive:mounted large');
      const mount = await rclone.mount();
      try {
        const file = await open(join(mount.path, 'mounted large'), 'r');
        for (const random of new Uint32Array(pseudoRandomBytes(4 * 40, 7).buffer)) {
          const offset = random % (size - 70_000);
          const { buffer, bytesRead } = await file.read(Buffer.alloc(65_536), 0, 65_536, offset);
          expect(bytesRead).toBe(65_536);
          expect(buffer.equals(content.subarray(offset, offset + 65_536)), `at ${offset}`).toBe(true);
        }
        await file.close();
      } finally {
        await mount.unmount();
      }
    });

    test('files written, renamed and removed in an rclone mount are so at the service', async () => {
      const mount = await rclone.mount();
      try {
        await mkdir(join(mount.path, 'mounted'));
        for (const name of ['stays', 'goes', 'old name'])
          await writeFile(join(mount.path, 'mounted', name), name);
        await rename(join(mount.path, 'mounted', 'old name'), join(mount.path, 'mounted', 'new name'));
        await rm(join(mount.path, 'mounted', 'goes'));
      } finally {
        await mount.unmount();
      }
      expect(lines((await rclone.run('lsf', 'drive:mounted')).stdout)).toEqual(['new name', 'stays']);
      expect((await rclone.run('cat', 'drive:mounted/new name')).stdout).toBe('old name');
    });

    test('an rclone mount shows a file made elsewhere after the long poll', async () => {
      await rclone.pipe('old', 'rcat', 'drive:watched/made before');
      // Only the poll can end the cached listing.
      const mount = await rclone.mount('--dir-cache-time', '1000h', '--poll-interval', '1s');
      try {
        expect(await readdir(join(mount.path, 'watched'))).toEqual(['made before']);
        await rclone.pipe('new', 'rcat', 'drive:watched/made elsewhere');
        const names = () => readdir(join(mount.path, 'watched'));
        await eventually(async () => expect(await names()).toContain('made elsewhere'), 200);
      } finally {
        await mount.unmount();
      }
    });
  });

  describe.each(['sync', 'async', 'off'])('batch mode %s', (mode) => {
    test(`rclone copy with batch mode ${mode} stores all small files, several in one commit unless it is off`, async () => {
      const many = join(local.path, 'many');
      await mkdir(many, { recursive: true });
      const names = Array.from({ length: SMALL_FILES }, (_, index) => `file ${index}`);
      for (const name of names) await writeFile(join(many, name), `content of ${name}`);
      const before = new Map(hosts.traffic.acceptedCalls);
      // On a busy machine a commit waits for its turn so long that the service refuses it, and rclone has to repeat it.
      const flags = ['--dropbox-batch-mode', mode, '--transfers', '64'];
      await rclone.run('copy', many, `drive:many ${mode}`, ...flags);
      const calls = callsSince(before);
      await rclone.run('check', many, `drive:many ${mode}`);
      // Several files a commit, or one each.
      const [batches = 0, singles = 0] = ['files/upload_session/finish_batch_v2', 'files/upload'].map(
        (name) => calls.get(name),
      );
      if (mode === 'off') expect([batches, singles]).toEqual([0, SMALL_FILES]);
      // rclone sends the files that arrive within half a second as one batch, so the exact number varies.
      else expect(batches, `${batches} batches, ${singles} single ones`).toBeLessThan(names.length / 2);
      if (mode !== 'off') expect(singles).toBe(0);
    });
  });

  test('rclone purge removes a folder of the service in one call of delete_v2', async () => {
    await rclone.run('copy', join(source, 'sub folder'), 'drive:to purge');
    const before = new Map(hosts.traffic.acceptedCalls);
    await rclone.run('purge', 'drive:to purge');
    expect(callsSince(before).get('files/delete_v2')).toBe(1);
    expect(lines((await rclone.run('lsf', 'drive:')).stdout)).not.toContain('to purge/');
  });
});

/** Returns a link's address at the service itself: only the proxy resolves the host in the link. */
function atService(link: URL): URL {
  return new URL(link.pathname + link.search, service.url);
}
