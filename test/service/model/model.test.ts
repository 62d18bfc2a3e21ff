import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openStorage } from '../../../src/service/storage/open.ts';
import { systemClock } from '../../../src/util/clock.ts';
import { silentLog } from '../../../src/util/log.ts';
import { builtUrl } from '../../support/build.ts';
import { effort, testSeed } from '../../support/effort.ts';
import { ServiceProcess } from '../../support/service-process.ts';
import { expectSound } from '../storage/invariants.ts';
import { Run } from './run.ts';
import { restart, step } from './steps.ts';

const OPERATIONS = effort(120);

/** Minimum and maximum number of operations between two ends of the service. */
const PER_LIFE_MIN = 30;
const PER_LIFE = 100;
const life = fc.tuple(fc.array(step, { minLength: PER_LIFE_MIN, maxLength: PER_LIFE, size: 'max' }), restart);

let dataDirectory: string;
let service: ServiceProcess;

beforeAll(async () => {
  dataDirectory = await mkdtemp(join(tmpdir(), 'davgate-model-'));
  // Few rows, so that most moves and copies of a folder take several transactions.
  service = new ServiceProcess(builtUrl('service/server.ts'), dataDirectory, {
    steps: { stagedRowsMax: 3, removedRowsMax: 3 },
  });
  await service.start();
});
afterAll(async () => {
  await service.end('SIGKILL');
  await rm(dataDirectory, { recursive: true });
});

test(`${OPERATIONS} random operations over HTTP have the outcomes of a model, across kills of the service`, async () => {
  let runs = 0;
  let taken = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(life, { minLength: 1, maxLength: 3 }), async (lives) => {
      if (taken >= OPERATIONS) return;
      // A failed run may have left the service stopped.
      if (!service.isRunning) await service.start();
      const run = new Run(service, `/run${runs++}`);
      await run.begin();
      for (const [steps, end] of lives) {
        for (const next of [...steps, end]) await run.take(next);
        taken += steps.length + 1;
      }
      await run.follow();
    }),
    {
      numRuns: Math.ceil(OPERATIONS / PER_LIFE_MIN),
      // No shrinking, which would take hundreds of restarts. The seed repeats the run.
      endOnFailure: true,
      seed: testSeed(),
    },
  );
  expect(taken).toBeGreaterThanOrEqual(OPERATIONS);
  await service.end('SIGTERM');
  expect(service.warnings).toBe('');
  // Waits for the background cleanup after the last kill.
  const storage = await openStorage({ dataDirectory, clock: systemClock, log: silentLog });
  await storage.tidy();
  await storage.close();
  expectSound(dataDirectory);
  process.stdout.write(`model test: ${taken} operations in ${runs} runs\n`);
});
