import { Readable } from 'node:stream';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Announcer } from '../../../src/drive/changes.ts';
import { createDriveView } from '../../../src/drive/view/drive-view.ts';
import { FolderSize } from '../../../src/drive/view/folder-size.ts';
import type { ViewedDrive } from '../../../src/drive/view/mounts.ts';
import { Quota } from '../../../src/drive/view/quota.ts';
import { type DavServer, startDav } from '../../support/dav.ts';
import { bodyOf, MemoryDrive } from '../../support/memory-drive.ts';
import { MemoryRemote } from '../../support/memory-remote.ts';
import { path } from '../../support/paths.ts';

// A user whose folder may have 100 bytes, over a whole drive.

let remote: MemoryRemote;
let memory: MemoryDrive;
let viewed: ViewedDrive;
let size: FolderSize;
let dav: DavServer;

async function serve(settings: { readonly writeBack?: boolean } = {}): Promise<void> {
  remote = new MemoryRemote();
  remote.putFile(path('/Ann/old.txt'), 'x'.repeat(40));
  memory = await MemoryDrive.open(remote, settings);
  const { files, state } = memory;
  viewed = { files, state, history: files.history, changes: files.changes, catchUp: undefined };
  size = new FolderSize(viewed, path('/Ann'), memory.clock);
  const quota = new Quota(size, 100, memory.clock);
  const view = createDriveView([
    { at: path('/'), drive: viewed, root: path('/Ann'), isReadOnly: false, quota },
  ]);
  dav = await startDav({ wrap: () => view });
}

afterEach(async () => {
  await dav.close();
  await memory.close();
});

const bytes = (count: number) => 'n'.repeat(count);

const statusOf = async (method: string, target: string, headers = {}, body?: string): Promise<number> =>
  (await dav.send(method, target, { headers, ...(body !== undefined && { body }) })).status;

const put = (target: string, count: number) => statusOf('PUT', target, {}, bytes(count));

const QUOTA = '<propfind xmlns="DAV:"><prop><quota-available-bytes/><quota-used-bytes/></prop></propfind>';

/** Returns `[used, available]` as the protocol shows them. */
async function shown(): Promise<readonly number[]> {
  const { text } = await dav.send('PROPFIND', '/', { headers: { Depth: '0' }, body: QUOTA });
  return ['used', 'available'].map((name) =>
    Number(new RegExp(`quota-${name}-bytes>(\\d+)<`).exec(text)?.[1] ?? 'NaN'),
  );
}

describe('a quota of 100 bytes', () => {
  beforeEach(() => serve());

  test('PUT beyond the quota answers 507 with quota-not-exceeded before the body is sent, and stores nothing', async () => {
    const head = `PUT /big HTTP/1.1\r\nHost: x\r\nContent-Length: 61\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n`;
    const answer = await dav.raw(head);
    expect(answer).toMatch(/^HTTP\/1\.1 507 /);
    expect(answer).not.toContain('100 Continue');
    expect(answer).toContain('<D:quota-not-exceeded/>');
    expect(answer).toContain('no room for /big');
    expect(await statusOf('GET', '/big')).toBe(404);
    expect(await put('/fits', 60)).toBe(201);
  });

  test('what is written, replaced and removed through the gateway counts at once', async () => {
    expect(await put('/a', 50)).toBe(201);
    expect(await put('/b', 20)).toBe(507);
    expect(await put('/a', 30)).toBe(204);
    expect(await put('/b', 20)).toBe(201);
    expect(await shown()).toEqual([90, 10]);
    expect(await statusOf('DELETE', '/old.txt')).toBe(204);
    expect(await put('/c', 50)).toBe(201);
    expect(await shown()).toEqual([100, 0]);
  });

  test('in a folder that is too large already, smaller versions, moves and removals are allowed', async () => {
    remote.putFile(path('/Ann/huge'), bytes(200));
    await memory.feedTold();
    expect(await put('/x', 1)).toBe(507);
    expect(await put('/huge', 150)).toBe(204);
    expect(await put('/empty', 0)).toBe(201);
    expect(await statusOf('MKCOL', '/sub')).toBe(201);
    expect(await statusOf('MOVE', '/huge', { Destination: '/sub/huge' })).toBe(201);
    expect(await shown()).toEqual([190, 0]);
    expect(await statusOf('DELETE', '/sub')).toBe(204);
    expect(await put('/x', 60)).toBe(201);
  });

  test('a chunked PUT stops with 507 at the first byte that does not fit, and the old file stays', async () => {
    const chunked = (...sizes: readonly number[]) =>
      Readable.from(sizes.map((count) => Buffer.from(bytes(count))));
    const refused = await dav.send('PUT', '/old.txt', { body: chunked(40, 60, 1) });
    expect([refused.status, refused.text]).toEqual([507, expect.stringContaining('quota-not-exceeded')]);
    expect((await dav.send('GET', '/old.txt')).text).toBe('x'.repeat(40));
    expect((await dav.send('PUT', '/old.txt', { body: chunked(40, 60) })).status).toBe(204);
    expect(await shown()).toEqual([100, 0]);
  });

  test('COPY counts everything in the tree, and a copy over a file only what is more', async () => {
    for (const target of ['/t/', '/t/u/']) expect(await statusOf('MKCOL', target)).toBe(201);
    expect(await put('/t/u/f', 25)).toBe(201);
    expect(await statusOf('COPY', '/t/', { Destination: '/t2/' })).toBe(201);
    expect(await statusOf('COPY', '/t/', { Destination: '/t3/' })).toBe(507);
    expect(await statusOf('GET', '/t3/')).toBe(404);
    expect(await statusOf('COPY', '/t/', { Destination: '/t3/', Depth: '0' })).toBe(201);
    expect(await statusOf('COPY', '/t/u/f', { Destination: '/old.txt' })).toBe(204);
    expect(await shown()).toEqual([75, 25]);
  });

  test('writes at the same time together stay within the quota, and a failed one gives its bytes back', async () => {
    await shown();
    const gate = remote.holdNext('write', 'begin');
    const first = put('/a', 40);
    await gate.reached;
    expect(await put('/b', 30)).toBe(507);
    expect(await shown()).toEqual([40, 20]);
    remote.failNext('write', 'insufficient-space');
    gate.release();
    expect(await first).toBe(507);
    expect(await put('/b', 60)).toBe(201);
  });

  test('changes that others make are counted when the change feed tells of them', async () => {
    expect(await shown()).toEqual([40, 60]);
    remote.putFile(path('/Ann/sub/other'), bytes(50));
    remote.putFile(path('/Bob/other'), bytes(500));
    await memory.feedTold();
    expect(await put('/a', 11)).toBe(507);
    expect(await shown()).toEqual([90, 10]);
    remote.delete(path('/Ann/sub'));
    await memory.feedTold();
    expect(await shown()).toEqual([40, 60]);
  });

  test('before a refusal the folder is listed again, so that an old size refuses nothing that fits', async () => {
    const unaware = new FolderSize({ ...viewed, changes: new Announcer() }, path('/Ann'), memory.clock);
    const quota = new Quota(unaware, 100, memory.clock);
    const files = createDriveView([
      { at: path('/'), drive: viewed, root: path('/Ann'), isReadOnly: false, quota },
    ]).files;
    expect(await files.freeSpace()).toEqual({ usedBytes: 40, availableBytes: 60 });
    await memory.files.remove(path('/Ann/old.txt'), { recoverable: false });
    await memory.clock.advance(10_000);
    const write = (sizeBytes: number) =>
      files.write(path('/a'), bodyOf(bytes(sizeBytes)), { mode: { if: 'any' }, sizeBytes });
    await expect(write(101)).rejects.toThrow(
      'the quota of 100 bytes is used up: there is no room for /a, because 100 bytes are free',
    );
    await write(100);
    expect(remote.text(path('/Ann/a'))).toBe(bytes(100));
  });

  test('browsing and further writes cost no call for the quota', async () => {
    await shown();
    await put('/a', 1);
    const calls = await memory.questionsOf(async () => {
      await shown();
      await put('/a', 2);
      await put('/c', 3);
    });
    expect(calls).toEqual(['write /Ann/a', 'write /Ann/c']);
  });

  test('the account’s free space is shown where it is smaller than what the quota leaves', async () => {
    remote.allocatedBytes = 70;
    expect(await shown()).toEqual([40, 30]);
  });

  test('while the service is away a write is not refused because of the quota', async () => {
    remote.goAway('offline');
    const answer = memory.clock.during(dav.send('PUT', '/a', { body: bytes(90) }));
    expect((await answer).status).toBe(503);
    remote.back();
  });

  test('MOVE into the folder from elsewhere in the drive counts everything that comes', async () => {
    remote.putFile(path('/Bob/t/f'), bytes(61));
    remote.putFile(path('/Bob/g'), bytes(60));
    await memory.feedTold();
    const quota = new Quota(size, 100, memory.clock);
    const both = createDriveView([
      { at: path('/ann'), drive: viewed, root: path('/Ann'), isReadOnly: false, quota },
      { at: path('/bob'), drive: viewed, root: path('/Bob'), isReadOnly: false },
    ]);
    await dav.close();
    dav = await startDav({ wrap: () => both });
    expect(await statusOf('MOVE', '/bob/t/', { Destination: '/ann/t/' })).toBe(507);
    expect(await statusOf('COPY', '/bob/t/', { Destination: '/ann/t/' })).toBe(507);
    expect(remote.text(path('/Bob/t/f'))).toBe(bytes(61));
    expect(await statusOf('MOVE', '/bob/g', { Destination: '/ann/g' })).toBe(201);
    expect(await statusOf('MOVE', '/ann/g', { Destination: '/bob/g' })).toBe(201);
    expect(await statusOf('COPY', '/ann/old.txt', { Destination: '/bob/old.txt' })).toBe(201);
  });

  test('a version or a deleted file comes back only if it fits', async () => {
    expect(await put('/a', 60)).toBe(201);
    expect(await statusOf('PUT', '/a', {}, 'short')).toBe(204);
    expect(await put('/b', 20)).toBe(201);
    const { history, files } = createDriveView([
      {
        ...{ at: path('/'), drive: viewed, root: path('/Ann'), isReadOnly: false },
        quota: new Quota(size, 100, memory.clock),
      },
    ]);
    const [, longer] = (await history.versions(path('/a'))).files;
    const refused = { fault: 'over-quota' };
    await expect(history.restore(path('/a'), longer?.rev ?? '')).rejects.toMatchObject(refused);
    await files.remove(path('/old.txt'), { recoverable: true });
    await history.restore(path('/a'), longer?.rev ?? '');
    await expect(history.undelete(path('/old.txt'))).rejects.toMatchObject(refused);
    await files.remove(path('/b'), { recoverable: true });
    await history.undelete(path('/old.txt'));
    expect(await shown()).toEqual([100, 0]);
  });
});

test('with writes in the journal, bytes that are accepted count before the service has them', async () => {
  await serve({ writeBack: true });
  const gate = remote.holdNext('write', 'begin');
  expect(await put('/a', 50)).toBe(201);
  await gate.reached;
  expect(await shown()).toEqual([90, 10]);
  expect(await put('/b', 11)).toBe(507);
  expect(await put('/a', 60)).toBe(204);
  gate.release();
  await memory.untilLanded();
  expect(await shown()).toEqual([100, 0]);
});

test('two users of a folder share its size, each with an own quota', async () => {
  await serve();
  const ofBob = createDriveView([
    {
      ...{ at: path('/'), drive: viewed, root: path('/Ann'), isReadOnly: false },
      quota: new Quota(size, 60, memory.clock),
    },
  ]);
  const bob = await startDav({ wrap: () => ofBob });
  const gate = remote.holdNext('write', 'begin');
  const running = put('/a', 20);
  await gate.reached;
  expect((await bob.send('PUT', '/b', { body: 'x' })).status).toBe(507);
  gate.release();
  expect(await running).toBe(201);
  expect(await put('/c', 40)).toBe(201);
  await bob.close();
});
