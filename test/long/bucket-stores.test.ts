import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { checkStorage } from '../../src/service/storage/check/storage-check.ts';
import type { Storage } from '../../src/service/storage/storage.ts';
import { BLOCK_BYTES } from '../../src/util/content-hash.ts';
import { bytesOf, HOME, opened, put, refusal } from '../service/storage/opened.ts';
import { openedShared, postgresTests, tidyAll } from '../service/storage/opened-shared.ts';
import { startCeph } from '../support/ceph.ts';
import { atService, copied, newFolder } from '../support/copied-places.ts';
import { eventually } from '../support/eventually.ts';
import { answersOf, CONTINUED, continued, cursorsIn, filled } from '../support/filled-service.ts';
import type { TestObjectStore } from '../support/object-stores.ts';
import { requestObject } from '../support/signed-s3.ts';
import { startSwift } from '../support/swift.ts';

const STORES = [
  { name: 'Ceph', startStore: startCeph },
  { name: 'Swift', startStore: startSwift },
] as const;

const { newPlace } = postgresTests();

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

  /** Writes files, and reads them after a kill of the store, during which an upload is refused. */
  async function expectKept(storage: Storage): Promise<readonly Buffer[]> {
    const contents = [70_000, BLOCK_BYTES, 3 * BLOCK_BYTES + 100_000].map((size) => randomBytes(size));
    await Promise.all(contents.map((bytes, index) => put(storage, `/${index}`, bytes)));
    await store.stop();
    expect(await refusal(put(storage, '/meanwhile', randomBytes(100_000)))).toMatch(/does not answer/);
    await store.start();
    await expectRead(storage, contents);
    return contents;
  }

  async function expectRead(storage: Storage, contents: readonly Buffer[]): Promise<void> {
    for (const [index, bytes] of contents.entries()) {
      expect(bytes.equals(await read(storage, `/${index}`))).toBe(true);
      const part = bytes.subarray(100, 60_000);
      expect(part.equals(await read(storage, `/${index}`, { start: 100, end: 60_000 }))).toBe(true);
    }
  }

  /** Removes the files, and expects that their blocks go. */
  async function expectEmptied(storage: Storage, contents: readonly Buffer[]): Promise<void> {
    for (const index of contents.keys()) await storage.removeForever(HOME, `/${index}`);
    await eventually(async () => {
      await tidyAll(storage);
      expect(await blocksThere()).toBe(0);
    });
  }

  test('keeps files across a kill of the store and a restart, refuses uploads meanwhile, and a check finds no damage', async () => {
    const first = await open();
    const contents = await expectKept(first);
    await first.close();
    const checked = { dataDirectory: first.dataDirectory, bucket: access() };
    for await (const { what } of checkStorage(checked, () => undefined)) expect(what).toBe('nothing');

    const storage = await open(first.dataDirectory);
    await expectRead(storage, contents);
    await expectEmptied(storage, contents);
  });

  test('with metadata in PostgreSQL keeps files across a kill of the store for another process, and the collector removes their blocks', async () => {
    const place = await newPlace();
    const options = { blocks: access(), uploadMsMax: 0 };
    const { storage: first } = await openedShared(place, options);
    const { storage: other } = await openedShared(place, options);
    const contents = await expectKept(first);
    await expectRead(other, contents);
    await first.close();
    const { storage: fresh } = await openedShared(place, options);
    await fresh.tidy();
    await expectRead(fresh, contents);
    await expectEmptied(fresh, contents);
  });

  test('says at its start which variable has a wrong secret', async () => {
    const { address, login } = access();
    const wrong = { address, login: { ...login, secretAccessKey: 'no' } };
    expect(await refusal(opened({ bucket: wrong }))).toMatch('check AWS_SECRET_ACCESS_KEY');
  });

  // The last one: its blocks stay in the bucket, where others count.
  test('a service that is copied from a data directory to PostgreSQL and the store, and from there to a data directory, gives the same answers, follows its cursors, and goes on', async () => {
    const { address, login } = access();
    const from = { dataDirectory: await newFolder() };
    const { url: metadata } = await newPlace();
    const there = { metadata, blocks: { address: { ...address, prefix: 'copied/' }, login } };
    const back = { dataDirectory: join(await newFolder(), 'new') };
    const { made, before, changes } = await atService(from, async (service) => {
      const made = await filled(service);
      const before = await answersOf(service.url, made);
      return { made, before, changes: await cursorsIn(service.url, made) };
    });
    for (const [source, target] of [
      [from, there],
      [there, back],
    ] as const) {
      expect(await copied(source, target)).toMatchObject({ blocks: 3, earlierBlocks: 0 });
      await atService(target, async ({ url }) => {
        expect(await answersOf(url, made)).toEqual(before);
        expect(await cursorsIn(url, made)).toEqual(changes);
      });
    }
    for (const place of [there, back])
      await atService(place, async ({ url }) => expect(await continued(url, made)).toEqual(CONTINUED));
  });
});
