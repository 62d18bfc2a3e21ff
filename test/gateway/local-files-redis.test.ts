import { afterEach, beforeEach, expect, test } from 'vitest';
import type { LocalFileStore } from '../../src/state/local-files.ts';
import { openRedisState } from '../../src/state/redis/state.ts';
import { systemClock } from '../../src/util/clock.ts';
import { silentLog } from '../../src/util/log.ts';
import { ROOT } from '../../src/util/path.ts';
import { localFileAt } from '../contract/local-files.contract.ts';
import { aHundredAtOnce } from '../support/a-hundred-at-once.ts';
import { path } from '../support/paths.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';

const MIB = 1024 * 1024;

let redis: TestRedis;
const closers: (() => Promise<void>)[] = [];

beforeEach(async () => {
  redis = await startRedis();
});
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
  await redis.close();
});

async function open(localFilesBytesMax?: number) {
  const limit = localFilesBytesMax === undefined ? {} : { localFilesBytesMax };
  const state = await openRedisState({ url: redis.url, clock: systemClock, log: silentLog, ...limit });
  closers.push(() => state.close());
  return state.drive('d');
}

const put = ({ put }: LocalFileStore, number: number, sizeBytes: number) => {
  const content = new Uint8Array(sizeBytes);
  return put(localFileAt(`/._${number}`, content), content);
};

const sizeOf = async (store: LocalFileStore) => (await store.in(ROOT)).length;

test('Redis keeps the newest 64 MiB of the local files of a drive, metadata included', async () => {
  const { localFiles } = await open();
  for (let number = 1; number <= 65; number++) await put(localFiles, number, MIB);
  const kept = (await localFiles.in(ROOT)).map((file) => file.path);
  expect([kept.length, kept.includes(path('/._2')), kept.includes(path('/._3'))]).toEqual([63, false, true]);
});

test('after the limit was lowered, each change in Redis removes at most 1,000 of the oldest local files', async () => {
  const { localFiles } = await open();
  await aHundredAtOnce().addAll(
    Array.from({ length: 1_100 }, (_, number) => () => put(localFiles, number, 1)),
  );
  // Each of them counts a good kilobyte.
  const { localFiles: lowered } = await open(11_000);
  await put(lowered, 1_100, 1);
  expect(await sizeOf(lowered)).toBe(101);
  await put(lowered, 1_101, 1);
  expect(await sizeOf(lowered)).toBe(10);
});
