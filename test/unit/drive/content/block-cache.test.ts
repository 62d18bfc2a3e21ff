import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { openBlockCache } from '../../../../src/drive/content/block-cache.ts';
import { systemClock } from '../../../../src/util/clock.ts';
import { silentLog } from '../../../../src/util/log.ts';
import { eventually } from '../../../support/eventually.ts';

test('a block cache with the maximum number of files removes the least recently used one for another', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'davgate-cache-'));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  const options = { directory, sizeBytesMax: 1024 ** 3, filesMax: 2, clock: systemClock, log: silentLog };
  const blockOf = (content: string) => ({ content, index: 0, sizeBytes: 3 });
  for (const content of ['first', 'second', 'third']) {
    const cache = await openBlockCache(options);
    expect(cache.keep(blockOf(content), Buffer.from('abc'))).toBe(true);
    await cache.close();
  }
  const filesOf = async () => {
    const names = await readdir(join(directory, 'v1'), { recursive: true });
    return names.filter((name) => /\/[0-9a-f]{32}-/.test(name)).length;
  };
  await eventually(async () => expect(await filesOf()).toBe(2));
  const cache = await openBlockCache(options);
  onTestFinished(() => cache.close());
  expect(cache.has(blockOf('third'))).toBe(true);
});

test('a block that is forgotten while it is read from the disk does not come back into memory', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'davgate-cache-'));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  const options = { directory, sizeBytesMax: 1024 ** 3, clock: systemClock, log: silentLog };
  const block = { content: 'damaged', index: 0, sizeBytes: 3 };
  const first = await openBlockCache(options);
  first.keep(block, Buffer.from('abc'));
  await first.close();
  const cache = await openBlockCache(options);
  onTestFinished(() => cache.close());
  const reading = cache.read(block, 0, 3);
  cache.forget(block);
  await reading;
  expect(cache.has(block)).toBe(false);
  const readingAgain = cache.read(block, 0, 3);
  cache.keep(block, Buffer.from('new'));
  await readingAgain;
  expect(Buffer.from(cache.inMemory(block) ?? []).toString()).toBe('new');
});
