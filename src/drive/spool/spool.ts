import { randomUUID } from 'node:crypto';
import { mkdir, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Clock } from '../../util/clock.ts';
import type { Log } from '../../util/log.ts';
import type { Files } from '../files.ts';
import { SpoolBudget, SpoolFile } from './spool-file.ts';
import { SpooledBody } from './spooled-body.ts';

/** Maximum size of all spooled bodies on the disk: a body that is spooled at the slow rate lasts 40 minutes with it. */
const SPOOL_BYTES_MAX = 2 * 1024 ** 3;

/** Maximum size of a body that the buffers of a connection hold: `node:http` reads that much ahead. */
const BUFFERED_BYTES_MAX = 64 * 1024;

/** Name of the spool's folder in earlier versions, which lay at the same place and held temporary files only. */
const FORMER_NAME = 'spill';

export interface SpoolOptions {
  /** Directory of the spool alone: other files in it are removed. */
  readonly directory: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly bytesMax?: number;
}

/** Disk space for bodies that the service does not accept yet. */
export interface Spool {
  /** Returns `body`, spooled while nobody reads it. The result must be closed. */
  attach(body: AsyncIterable<Uint8Array>): SpooledBody;
}

/** Opens the spool. Never throws: without a disk the senders of bodies wait. */
export async function openSpool({ directory, clock, log, bytesMax }: SpoolOptions): Promise<Spool> {
  const budget = new SpoolBudget(bytesMax ?? SPOOL_BYTES_MAX);
  try {
    // Files of a killed process: its clients will send again.
    await rm(directory, { recursive: true, force: true });
    await mkdir(directory, { recursive: true, mode: 0o700 });
    await rm(join(dirname(directory), FORMER_NAME), { recursive: true, force: true });
  } catch (error) {
    log.warn('cannot open the spool; while the storage service is slow, clients wait', {
      reason: String(error),
    });
  }
  return {
    attach: (body) =>
      new SpooledBody(body, new SpoolFile(join(directory, randomUUID()), budget), { clock, log }),
  };
}

/**
 * Returns a `write` that spools its body while it waits for the service; without a spool, `write` itself. A body of at
 * most 64 KiB is not spooled: its client does not wait, because the connection's buffers hold all of it.
 */
export function writeSpooled(write: Files['write'], spool: Spool | undefined): Files['write'] {
  if (!spool) return write;
  return async (path, body, options, signal) => {
    if (options.sizeBytes !== undefined && options.sizeBytes <= BUFFERED_BYTES_MAX)
      return write(path, body, options, signal);
    const spooled = spool.attach(body);
    try {
      return await write(path, spooled, options, signal);
    } finally {
      await spooled.close();
    }
  };
}
