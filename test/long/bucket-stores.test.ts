import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { checkStorage } from '../../src/service/storage/check/storage-check.ts';
import type { Storage } from '../../src/service/storage/storage.ts';
import { BLOCK_BYTES } from '../../src/util/content-hash.ts';
import { bytesOf, HOME, opened, put, refusal } from '../service/storage/opened.ts';
import { startCeph } from '../support/ceph.ts';
import { expectSoon } from '../support/eventually.ts';
import type { TestObjectStore } from '../support/object-stores.ts';
import { requestObject } from '../support/signed-s3.ts';
import { startSwift } from '../support/swift.ts';

const STORES = [
  { name: 'Ceph', startStore: startCeph },
  { name: 'Swift', startStore: startSwift },
] as const;

describe.each(STORES)('the storage with its blocks in $name', ({ startStore }) => {
  let store: TestObjectStore;
  beforeAll(async () => {
    store = await startStore();
  });
  afterAll(() => store?.close());

  const access = () => ({
    address: { endpoint: store.url, region: store.region, bucket: store.bucket, prefix: 'our files/' },
    login: { accessKeyId: store.accessKey, secretAccessKey: store.secretKey },
  });
  const open = (dataDirectory?: string) =>
    opened({ bucket: access(), ...(dataDirectory !== undefined && { dataDirectory }) });

  async function read(
    storage: Storage,
    path: string,
    range?: { start: number; end: number },
  ): Promise<Buffer> {
    const found = await storage.stat(HOME, path, false);
    if (found.kind !== 'file') throw new Error(`${path} is a ${found.kind}`);
    return bytesOf(storage.read(HOME, found, range));
  }

  async function blocksThere(): Promise<number> {
    const { body } = await requestObject(store, { method: 'GET', query: { 'list-type': '2' } });
    return [...body.toString().matchAll(/<Key>[^<]*[0-9a-f]{64}-[0-9a-f]+</g)].length;
  }

  test('keeps files across a kill of the store and a restart, refuses uploads meanwhile, and a check finds no damage', async () => {
    const first = await open();
    const contents = [70_000, BLOCK_BYTES, 3 * BLOCK_BYTES + 100_000].map((size) => randomBytes(size));
    await Promise.all(contents.map((bytes, index) => put(first, `/${index}`, bytes)));
    await store.stop();
    expect(await refusal(put(first, '/meanwhile', randomBytes(100_000)))).toMatch(/does not answer/);
    await store.start();
    for (const [index, bytes] of contents.entries()) {
      expect(bytes.equals(await read(first, `/${index}`))).toBe(true);
      const part = bytes.subarray(100, 60_000);
      expect(part.equals(await read(first, `/${index}`, { start: 100, end: 60_000 }))).toBe(true);
    }
    await first.close();
    const checked = { dataDirectory: first.dataDirectory, bucket: access() };
    for await (const { what } of checkStorage(checked, () => undefined)) expect(what).toBe('nothing');

    const storage = await open(first.dataDirectory);
    for (const [index, bytes] of contents.entries())
      expect(bytes.equals(await read(storage, `/${index}`))).toBe(true);
    for (const index of contents.keys()) await storage.removeForever(HOME, `/${index}`);
    await storage.tidy();
    await expectSoon(blocksThere).toBe(0);
  });

  test('says at its start which variable has a wrong secret', async () => {
    const { address, login } = access();
    const wrong = { address, login: { ...login, secretAccessKey: 'no' } };
    expect(await refusal(opened({ bucket: wrong }))).toMatch('check AWS_SECRET_ACCESS_KEY');
  });
});
