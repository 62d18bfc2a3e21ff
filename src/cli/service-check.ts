import { type CheckProgress, checkService } from '../service/admin/check.ts';
import { elapsedMs, systemClock } from '../util/clock.ts';
import type { ServiceValues } from './service.ts';
import { serviceDirectory } from './service-directory.ts';
import { bucketOf } from './service-stores.ts';

/** Time between two lines of progress, in ms. */
const PROGRESS_MS = 5000;

/** `davgate service check`: returns the exit code. */
export async function serviceCheckCommand(
  { data, blocks }: Pick<ServiceValues, 'data' | 'blocks'>,
  environment: NodeJS.ProcessEnv,
): Promise<number> {
  const dataDirectory = serviceDirectory(data, environment);
  const bucket = bucketOf(blocks, environment);
  let damages = 0;
  let progress: CheckProgress = { blocks: 0, bytes: 0, totalBlocks: 0, totalBytes: 0 };
  let shownAt = systemClock.instant();
  const report = (now: CheckProgress) => {
    progress = now;
    if (elapsedMs(systemClock, shownAt) < PROGRESS_MS) return;
    shownAt = systemClock.instant();
    const { blocks, bytes, totalBlocks, totalBytes } = now;
    process.stderr.write(
      `checked ${blocks} of ${totalBlocks} blocks, ${sizeOf(bytes)} of ${sizeOf(totalBytes)}\n`,
    );
  };
  for await (const line of checkService({ dataDirectory, bucket }, report)) {
    damages++;
    console.log(line);
  }
  const seen = `blocks: ${progress.blocks}, ${sizeOf(progress.bytes)}`;
  console.log(
    damages === 0
      ? `No damage in ${dataDirectory} (${seen}).`
      : `Damage found: ${damages} lines above (${seen}). Restore the data from a backup.`,
  );
  return damages === 0 ? 0 : 1;
}

function sizeOf(bytes: number): string {
  return bytes < 1e9 ? `${(bytes / 1e6).toFixed(1)} MB` : `${(bytes / 1e9).toFixed(1)} GB`;
}
