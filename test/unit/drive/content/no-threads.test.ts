import { expect, onTestFinished, test, vi } from 'vitest';
import { openBlockCache } from '../../../../src/drive/content/block-cache.ts';
import { type LogFields, silentLog } from '../../../../src/util/log.ts';
import { eventually } from '../../../support/eventually.ts';
import { ManualClock } from '../../../support/manual-clock.ts';
import { temporaryDirectory } from '../../../support/program.ts';

const machine = vi.hoisted(() => ({ isExhausted: true }));

// Refuses to start a thread like a machine without memory for it.
vi.mock('node:worker_threads', async (load) => {
  const real = await load<typeof import('node:worker_threads')>();
  class Worker extends real.Worker {
    constructor(...options: ConstructorParameters<typeof real.Worker>) {
      if (machine.isExhausted) throw new Error('ERR_WORKER_INIT_FAILED: EAGAIN');
      super(...options);
    }
  }
  return { ...real, Worker };
});

test('a block cache without a thread to write keeps its blocks in memory, and writes again when one can be started', async () => {
  const directory = await temporaryDirectory();
  onTestFinished(() => directory.remove());
  const clock = new ManualClock();
  const logged: LogFields[] = [];
  const note = (event: string, fields?: LogFields) => void logged.push({ event, ...fields });
  const log = { ...silentLog, warn: note, info: note };
  const options = { directory: directory.path, sizeBytesMax: 1024 ** 3, clock, log };
  const blockOf = (content: string) => ({ content, index: 0, sizeBytes: 3 });

  const cache = await openBlockCache(options);
  cache.keep(blockOf('first'), Buffer.from('abc'));
  await eventually(() =>
    expect(logged).toMatchObject([
      {
        event: 'cannot write to the block cache; reads continue without it',
        problem: 'ERR_WORKER_INIT_FAILED: EAGAIN',
      },
    ]),
  );
  expect(Buffer.from((await cache.read(blockOf('first'), 0, 3)) ?? []).toString()).toBe('abc');
  machine.isExhausted = false;
  await clock.advance(60_000);
  cache.keep(blockOf('second'), Buffer.from('def'));
  await eventually(() => expect(logged[1]?.['event']).toBe('the block cache is writable again'));
  await cache.close();

  const again = await openBlockCache(options);
  onTestFinished(() => again.close());
  expect([again.has(blockOf('first')), again.has(blockOf('second'))]).toEqual([false, true]);
});
