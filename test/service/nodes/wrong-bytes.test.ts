import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import { checkService } from '../../../src/service/admin/check.ts';
import { atService, copied, newFolder } from '../../support/copied-places.ts';
import { type MemoryBucket, startMemoryBucket } from '../../support/memory-bucket.ts';
import { startPostgres, type TestPostgres } from '../../support/postgres.ts';
import { download, put } from '../../support/service-client.ts';

const TEXT = randomBytes(50_000).toString('hex');

let postgres: TestPostgres;
let bucket: MemoryBucket;
let place: { readonly metadata: string; readonly blocks: MemoryBucket['access'] };

beforeAll(async () => {
  postgres = await startPostgres();
});
afterAll(() => postgres.close());
beforeEach(async () => {
  bucket = await startMemoryBucket();
  onTestFinished(() => bucket.close());
  place = { metadata: await postgres.newDatabase(), blocks: bucket.access };
});

/** Changes a byte of the next block that the bucket sends, on its way. */
function changeByteOnce(): void {
  let isDue = true;
  bucket.fault = ({ method, key }) => {
    if (!isDue || method !== 'GET' || !/[0-9a-f]{64}-/.test(key)) return undefined;
    isDue = false;
    return 'wrong-byte';
  };
}

test('a file whose byte changes on its way from the bucket is read again, whole and in part', async () => {
  await atService(place, async (service) => {
    await put(service, '/f', TEXT);
    changeByteOnce();
    expect((await download(service, '/f')).text === TEXT).toBe(true);
    changeByteOnce();
    const part = await download(service, '/f', { headers: { range: 'bytes=5-70000' } });
    expect(part.text === TEXT.slice(5, 70_001)).toBe(true);
  });
});

test('a check of a service tells nothing of a byte that changes on its way from the bucket', async () => {
  await atService(place, (service) => put(service, '/f', TEXT));
  changeByteOnce();
  const lines: string[] = [];
  for await (const { text } of checkService(place, () => undefined)) lines.push(text);
  expect(lines).toEqual([]);
});

test('a copy of a service goes on when a byte changes on its way from the bucket', async () => {
  await atService(place, (service) => put(service, '/f', TEXT));
  changeByteOnce();
  const target = { dataDirectory: await newFolder() };
  await copied(place, target);
  await atService(target, async (service) => {
    expect((await download(service, '/f')).text === TEXT).toBe(true);
  });
});
