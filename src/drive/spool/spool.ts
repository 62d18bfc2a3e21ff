import { randomUUID } from 'node:crypto';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../../util/clock.ts';
import type { Log } from '../../util/log.ts';
import type { Files } from '../files.ts';
import { SpillBudget, SpillFile } from './spool-file.ts';
import { PatientBody } from './spooled-body.ts';

/** On the disk at most, for all bodies of a drive. One that is taken in slowly lasts 40 minutes with it. */
const SPILL_BYTES_MAX = 2 * 1024 ** 3;

export interface SpillParts {
  /** For nothing else: what lies there is removed. */
  readonly directory: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly bytesMax?: number;
}

export interface Spill {
  /** `body`, which is taken on while nobody reads it; to be closed. */
  guard(body: AsyncIterable<Uint8Array>): PatientBody;
}

/** `write`, whose body goes on being taken while the service is waited for. */
export function writePatiently(files: Pick<Files, 'write'>, spill: Spill): Files['write'] {
  return async (path, body, options, signal) => {
    const patient = spill.guard(body);
    try {
      return await files.write(path, patient, options, signal);
    } finally {
      await patient.close();
    }
  };
}

/** Room on the disk for bodies whose parts cannot be sent yet. Never throws: without a disk their senders wait. */
export async function openSpill({ directory, clock, log, bytesMax }: SpillParts): Promise<Spill> {
  const budget = new SpillBudget(bytesMax ?? SPILL_BYTES_MAX);
  try {
    // Of a process that was killed: its clients know that they have to send again.
    await rm(directory, { recursive: true, force: true });
    await mkdir(directory, { recursive: true, mode: 0o700 });
  } catch (error) {
    log.warn('no disk for bodies that the service does not take yet', { reason: String(error) });
  }
  return {
    guard: (body) =>
      new PatientBody(body, new SpillFile(join(directory, randomUUID()), budget), { clock, log }),
  };
}
