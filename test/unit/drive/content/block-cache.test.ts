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
