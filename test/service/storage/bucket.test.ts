import { createHash, randomBytes } from 'node:crypto';
import { readdir, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { blockBucket } from '../../../src/service/storage/blocks/bucket/block-bucket.ts';
import type { BucketLogin } from '../../../src/service/storage/blocks/bucket/bucket-address.ts';
import { localDisk } from '../../../src/service/storage/blocks/disk.ts';
import { IncomingFiles } from '../../../src/service/storage/blocks/incoming-files.ts';
import { checkStorage } from '../../../src/service/storage/check/storage-check.ts';
import type { StorageOptions } from '../../../src/service/storage/open.ts';
import type { Storage } from '../../../src/service/storage/storage.ts';
import { BLOCK_BYTES } from '../../../src/util/content-hash.ts';
import { Sqlite } from '../../../src/util/sqlite/sqlite.ts';
import { expectSoon } from '../../support/eventually.ts';
import { type BucketFault, type MemoryBucket, startMemoryBucket } from '../../support/memory-bucket.ts';
import { temporaryDirectory } from '../../support/program.ts';
import { expectSound } from './invariants.ts';
import { body, bytesOf, commit, HOME, opened, put, refusal } from './opened.ts';

let bucket: MemoryBucket;

beforeEach(async () => {
  bucket = await startMemoryBucket();
  onTestFinished(() => bucket.close());
});

const openIn = (options: Partial<StorageOptions> = {}) => opened({ bucket: bucket.access, ...options });

/** Returns the bytes of the file at `path`, or those of a range. */
async function read(storage: Storage, path: string, range?: { start: number; end: number }): Promise<Buffer> {
  const found = await storage.stat(HOME, path, false);
  if (found.kind !== 'file') throw new Error(`${path} is a ${found.kind}`);
  return bytesOf(storage.read(HOME, found, range));
}

/** Returns the keys of the blocks. */
const blockKeys = () => [...bucket.objects.keys()].filter((key) => /\/[0-9a-f]{64}-/.test(key));

const blockNames = () => blockKeys().map((key) => key.slice(key.lastIndexOf('/') + 1));

/** Removes the file at `path` for good, and waits until its block has been asked to go. */
async function removeForever(storage: Storage, path: string): Promise<void> {
  await storage.removeForever(HOME, path);
  await storage.tidy();
}

/** Lets the first request fail that puts, gets or deletes a block. */
function failOnce(method: string, how: BucketFault): void {
  let isDue = true;
  bucket.fault = (request) => {
    if (!isDue || request.method !== method || !/[0-9a-f]{64}-/.test(request.key)) return undefined;
    isDue = false;
    return how;
  };
}

describe('blocks in a bucket', () => {
  test('files of any size read back equal, whole and in parts, also after a restart; no block is in the data directory', async () => {
    const first = await openIn();
    const contents = [0, 1, 65_536, 65_537, BLOCK_BYTES - 1, BLOCK_BYTES, 2 * BLOCK_BYTES + 7].map((size) =>
      randomBytes(size),
    );
    for (const [index, bytes] of contents.entries()) await put(first, `/${index}`, bytes);
    await first.close();
    const storage = await openIn({ dataDirectory: first.dataDirectory });
    for (const [index, bytes] of contents.entries()) {
      expect(bytes.equals(await read(storage, `/${index}`))).toBe(true);
      const range = { start: bytes.length >> 2, end: bytes.length >> 1 };
      if (range.end > range.start)
        expect(bytes.subarray(range.start, range.end).equals(await read(storage, `/${index}`, range))).toBe(
          true,
        );
    }
    expect(await readdir(join(first.dataDirectory, 'blocks'))).toEqual([]);
    expect(await readdir(join(first.dataDirectory, 'incoming'))).toEqual([]);
    expect(blockKeys()).toHaveLength(5);
    await storage.close();
    expectSound(first.dataDirectory, blockNames());
  });

  test('equal contents are one object, which goes with the last of them', async () => {
    const storage = await openIn();
    const bytes = randomBytes(100_000);
    await Promise.all(['/a', '/b', '/c'].map((path) => put(storage, path, bytes)));
    expect(blockKeys()).toHaveLength(1);
    await removeForever(storage, '/a');
    await removeForever(storage, '/b');
    expect(bytes.equals(await read(storage, '/c'))).toBe(true);
    await removeForever(storage, '/c');
    await expectSoon(blockKeys).toEqual([]);
  });

  test('a service that had its blocks in the data directory reads them beside those in the bucket', async () => {
    const before = await opened();
    const [old, fresh] = [randomBytes(100_000), randomBytes(100_000)];
    await put(before, '/old', old);
    await before.close();
    const storage = await openIn({ dataDirectory: before.dataDirectory });
    await put(storage, '/fresh', fresh);
    await put(storage, '/old again', old);
    expect(old.equals(await read(storage, '/old'))).toBe(true);
    expect(fresh.equals(await read(storage, '/fresh'))).toBe(true);
    expect(blockKeys()).toHaveLength(1);
  });
});

describe('a bucket that fails', () => {
  const bytes = randomBytes(100_000);

  test.each<[string, BucketFault]>([
    ['that is reset', 'reset'],
    ['whose answer is lost', 'lost-answer'],
    ['that is answered 503', { status: 503, code: 'SlowDown' }],
    ['that is answered 500', { status: 500, code: 'InternalError' }],
  ])('an upload with a request %s is stored at the next try', async (_, how) => {
    const storage = await openIn();
    failOnce('PUT', how);
    await put(storage, '/a', bytes);
    expect(bytes.equals(await read(storage, '/a'))).toBe(true);
    expect(blockKeys()).toHaveLength(1);
  });

  test.each<[string, BucketFault]>([
    ['that is reset', 'reset'],
    ['that breaks off', 'cut'],
    ['that is answered with a wrong byte', 'wrong-byte'],
    ['that is answered 503', { status: 503, code: 'SlowDown' }],
  ])('a file is read right with a request %s', async (_, how) => {
    const storage = await openIn();
    await put(storage, '/a', bytes);
    failOnce('GET', how);
    expect(bytes.equals(await read(storage, '/a'))).toBe(true);
    failOnce('GET', how);
    expect(bytes.subarray(5, 70_000).equals(await read(storage, '/a', { start: 5, end: 70_000 }))).toBe(true);
  });

  test('an upload that the bucket refuses fails, keeps the old file, and leaves nothing behind', async () => {
    const storage = await openIn();
    await put(storage, '/a', bytes);
    bucket.fault = ({ method }) => (method === 'PUT' ? { status: 403, code: 'AccessDenied' } : undefined);
    expect(await refusal(put(storage, '/a', randomBytes(100_000)))).toMatch(
      /^s3:\/\/drive\/our files at 127\.0\.0\.1:\d+ answers 403 AccessDenied: let this key put/,
    );
    bucket.fault = () => undefined;
    expect(bytes.equals(await read(storage, '/a'))).toBe(true);
    expect(await readdir(join(storage.dataDirectory, 'incoming'))).toEqual([]);
    await storage.tidy();
    expect(blockKeys()).toHaveLength(1);
  });

  test('a removal that takes place late does not remove the same content that was uploaded again', async () => {
    const storage = await openIn();
    await put(storage, '/a', bytes);
    bucket.fault = ({ method }) => (method === 'DELETE' ? 'late' : undefined);
    await storage.removeForever(HOME, '/a');
    await expectSoon(() => bucket.requests.some(({ method }) => method === 'DELETE')).toBe(true);
    await put(storage, '/b', bytes);
    bucket.fault = () => undefined;
    bucket.settle();
    expect(bytes.equals(await read(storage, '/b'))).toBe(true);
  });

  test('a block that arrives late, after its upload has failed, is removed by the next search', async () => {
    const storage = await openIn();
    bucket.fault = ({ method }) => (method === 'PUT' ? 'late' : undefined);
    expect(await refusal(put(storage, '/a', bytes))).toMatch(/does not answer/);
    bucket.fault = () => undefined;
    bucket.settle();
    expect(blockKeys()).toHaveLength(1);
    await storage.tidy();
    expect(blockKeys()).toEqual([]);
    expect(await refusal(read(storage, '/a'))).toMatch('not_found');
  });

  test('a block without a row, as a crash leaves it, is removed after the next start, and nothing else', async () => {
    const first = await openIn();
    await put(first, '/a', bytes);
    await first.close();
    const [key = ''] = blockKeys();
    const folder = key.slice(0, key.lastIndexOf('/') + 1);
    for (let number = 0; number < 7; number += 1)
      bucket.objects.set(`${folder}${randomBytes(32).toString('hex')}-${number}`, bytes);
    bucket.objects.set(`${folder}something else`, bytes);
    await writeFile(join(first.dataDirectory, 'incoming', '0'), 'half');
    markCrashed(first.dataDirectory);
    const storage = await openIn({ dataDirectory: first.dataDirectory });
    await storage.tidy();
    expect(blockKeys()).toEqual([key]);
    expect(bucket.objects.has(`${folder}something else`)).toBe(true);
    expect(bytes.equals(await read(storage, '/a'))).toBe(true);
  });

  test.each([
    ['is gone', (key: string) => void bucket.objects.delete(key), 'its object is missing'],
    [
      'has changed',
      (key: string) => void bucket.objects.set(key, randomBytes(100_000)),
      'its bytes have changed',
    ],
    ['is too short', (key: string) => void bucket.objects.set(key, bytes.subarray(1)), 'it has 99999 bytes'],
  ])(
    'a block that %s is never served, is found by a check, and comes back with the next upload',
    async (_, damage, why) => {
      const storage = await openIn();
      await put(storage, '/a', bytes);
      const [key = ''] = blockKeys();
      damage(key);
      expect(await refusal(read(storage, '/a'))).toMatch(why);
      await storage.close();
      expect(await damagesOf(storage.dataDirectory)).toEqual([expect.stringContaining(why)]);
      const again = await openIn({ dataDirectory: storage.dataDirectory });
      // Not read before: nothing but the upload itself can find the damage.
      await put(again, '/b', bytes);
      expect(bytes.equals(await read(again, '/a'))).toBe(true);
      await again.close();
      expect(await damagesOf(storage.dataDirectory)).toEqual([]);
    },
  );
});

describe('a bucket that is slow', () => {
  /** Returns the blocks in the bucket, which may be silent for `silenceMs`, and a function that keeps one more. */
  async function blocksIn(silenceMs: number) {
    const directory = await temporaryDirectory();
    onTestFinished(() => directory.remove());
    const incoming = new IncomingFiles(directory.path, localDisk);
    await incoming.prepare();
    const { access } = bucket;
    const blocks = blockBucket({ access, directoryTag: 'tag', hasBlocks: false, incoming, silenceMs });
    onTestFinished(() => blocks.close());
    await blocks.prepare();
    async function keep(bytes: Buffer): Promise<string> {
      const name = blocks.newName(createHash('sha256').update(bytes).digest('hex'));
      const file = await incoming.create();
      await writeFile(file.path, bytes);
      await blocks.keep(name, file);
      return name;
    }
    return { blocks, keep };
  }

  test('when it hangs, of 40 blocks none is kept, and those that wait for their turn are not sent; later ones are kept', async () => {
    const { blocks, keep } = await blocksIn(1000);
    bucket.fault = () => 'silent';
    const sent = () => bucket.requests.filter(({ method }) => method === 'PUT').length;
    const before = sent();
    const outcomes = await Promise.all(Array.from({ length: 40 }, () => refusal(keep(randomBytes(100_000)))));
    for (const outcome of outcomes) expect(outcome).toMatch(/^127\.0\.0\.1:\d+ does not answer/);
    // Eight are sent at the same time, and each of them five times.
    expect(sent() - before).toBeLessThanOrEqual(8 * 5);
    bucket.fault = () => undefined;
    const bytes = randomBytes(100_000);
    expect(bytes.equals(await blocks.read(await keep(bytes), bytes.length))).toBe(true);
  });

  test('a block that takes longer on its way than the bucket may be silent is kept', async () => {
    const silenceMs = 5000;
    const { blocks, keep } = await blocksIn(silenceMs);
    // More than the buffers of a connection hold.
    const bytes = randomBytes(32 * 1024 * 1024);
    bucket.bytesPerSecond = 3 * 1024 * 1024;
    const started = performance.now();
    const name = await keep(bytes);
    expect(performance.now() - started).toBeGreaterThan(2 * silenceMs);
    expect(bytes.equals(await blocks.read(name, bytes.length))).toBe(true);
  });
});

async function damagesOf(dataDirectory: string): Promise<string[]> {
  const damages: string[] = [];
  const checked = { dataDirectory, bucket: bucket.access };
  for await (const { what } of checkStorage(checked, () => undefined)) damages.push(what);
  return damages;
}

/** Makes the next start search for what a crash leaves behind. */
function markCrashed(dataDirectory: string): void {
  const database = new Sqlite(join(dataDirectory, 'storage.sqlite'));
  database.exec("UPDATE setting SET value = 0 WHERE name = 'closed'");
  database.close();
}

describe('a start', () => {
  test('without the bucket that has blocks is refused, and one with another bucket too', async () => {
    const storage = await openIn();
    await put(storage, '/a', randomBytes(100_000));
    await storage.close();
    const { dataDirectory } = storage;
    expect(await refusal(opened({ dataDirectory }))).toMatch(/has blocks in a bucket: give the --blocks/);
    const other = { ...bucket.access, address: { ...bucket.access.address, prefix: 'other/' } };
    expect(await refusal(opened({ dataDirectory, bucket: other }))).toMatch(
      /^s3:\/\/drive\/other does not have the blocks of this service/,
    );
  });

  test.each<[string, { login?: BucketLogin; bucket?: string }, string]>([
    [
      'a wrong secret',
      { login: { accessKeyId: 'the key', secretAccessKey: 'no' } },
      'check AWS_SECRET_ACCESS_KEY',
    ],
    [
      'an unknown key',
      { login: { accessKeyId: 'no', secretAccessKey: 'the secret' } },
      'check AWS_ACCESS_KEY_ID',
    ],
    ['a bucket that is not there', { bucket: 'no-drive' }, 'create the bucket'],
  ])('with %s says so', async (_, { login = bucket.access.login, bucket: name = 'drive' }, remedy) => {
    const access = { login, address: { ...bucket.access.address, bucket: name } };
    expect(await refusal(opened({ bucket: access }))).toMatch(remedy);
  });

  test('with temporary keys passes their session token on, and says when it is wrong', async () => {
    const login = { ...bucket.access.login, sessionToken: 'the token' };
    const temporary = await startMemoryBucket(login);
    onTestFinished(() => temporary.close());
    const storage = await opened({ bucket: temporary.access });
    await put(storage, '/a', randomBytes(100_000));
    expect((await read(storage, '/a')).length).toBe(100_000);
    const { accessKeyId, secretAccessKey } = login;
    for (const wrong of [
      { accessKeyId, secretAccessKey },
      { ...login, sessionToken: 'an old one' },
    ]) {
      const access = { ...temporary.access, login: wrong };
      expect(await refusal(opened({ bucket: access }))).toMatch('check AWS_SESSION_TOKEN');
    }
  });

  test.each([
    ['PUT', 'put'],
    ['GET', 'get'],
    ['DELETE', 'delete'],
  ])('with a key that may not %s objects is refused', async (method) => {
    bucket.fault = (request) =>
      request.method === method ? { status: 403, code: 'AccessDenied' } : undefined;
    expect(await refusal(openIn())).toMatch('let this key put, get, list and delete objects there');
  });

  test('with an endpoint that is no object store says so', async () => {
    const page = createServer((_request, response) => response.end('<p>Welcome & log in'));
    await new Promise<void>((resolve) => page.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void page.close());
    const { port } = page.address() as AddressInfo; // listening on TCP
    const address = { ...bucket.access.address, endpoint: `http://127.0.0.1:${port}` };
    expect(await refusal(opened({ bucket: { ...bucket.access, address } }))).toMatch(
      /127\.0\.0\.1:\d+ does not answer as it should \(more bytes/,
    );
  });

  test('two services in one folder of a bucket have blocks of their own', async () => {
    const bytes = randomBytes(100_000);
    const [one, other] = [await openIn(), await openIn()];
    for (const storage of [one, other]) await put(storage, '/a', bytes);
    expect(blockKeys()).toHaveLength(2);
    await removeForever(one, '/a');
    await expectSoon(blockKeys).toHaveLength(1);
    expect(bytes.equals(await read(other, '/a'))).toBe(true);
  });
});

test('a check of a bucket that does not give its blocks ends with one error, also when those read ahead fail first', async () => {
  const storage = await openIn();
  for (const name of ['/a', '/b', '/c', '/d']) await put(storage, name, randomBytes(100_000));
  await storage.close();
  const [first] = blockKeys();
  bucket.fault = ({ method, key }) => {
    if (method !== 'GET' || !/[0-9a-f]{64}-/.test(key)) return undefined;
    // It is asked for again, and meanwhile the blocks that are read ahead fail.
    return key === first ? 'reset' : { status: 403, code: 'AccessDenied' };
  };
  const unhandled: unknown[] = [];
  const note = (reason: unknown) => unhandled.push(reason);
  process.on('unhandledRejection', note);
  onTestFinished(() => void process.off('unhandledRejection', note));
  const checked = { dataDirectory: storage.dataDirectory, bucket: bucket.access };
  const check = async () => {
    for await (const { what } of checkStorage(checked, () => undefined)) expect(what).toBe('nothing');
  };
  await expect(check()).rejects.toThrow(/does not answer/);
  expect(unhandled).toEqual([]);
});

test('an upload session in a bucket is committed whole', async () => {
  const storage = await openIn();
  const bytes = randomBytes(BLOCK_BYTES + 100_000);
  const session = await storage.startSession(HOME, 'sequential', body(bytes.subarray(0, 70_000)), false);
  await storage.appendSession(HOME, { session, offset: 70_000 }, body(bytes.subarray(70_000)), false);
  await storage.finishSession(HOME, { session, offset: bytes.length }, commit('/a'), body());
  expect(bytes.equals(await read(storage, '/a'))).toBe(true);
  await storage.tidy();
  expect(blockKeys()).toHaveLength(2);
});
