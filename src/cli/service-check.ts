import { type CheckProgress, checkService } from '../service/admin/check.ts';
import { elapsedMs, systemClock } from '../util/clock.ts';
import type { ServiceValues } from './service.ts';
import { serviceDirectory } from './service-directory.ts';
import { storesOf } from './service-stores.ts';

/** Time between two lines of progress, in ms. */
const PROGRESS_MS = 5000;

/** Values of the options of `davgate service check`. */
export interface CheckValues
  extends Pick<ServiceValues, 'data' | 'metadata' | 'blocks' | 'keepDeletedBlocks'> {
  readonly repair?: boolean;
}

/** `davgate service check`: returns the exit code. */
export async function serviceCheckCommand(
  values: CheckValues,
  environment: NodeJS.ProcessEnv,
): Promise<number> {
  const { checked, name } = checkedBy(values, environment);
  let damages = 0;
  let repaired = 0;
  let progress: CheckProgress = { blocks: 0, bytes: 0 };
  let shownAt = systemClock.instant();
  const report = (now: CheckProgress) => {
    progress = now;
    if (elapsedMs(systemClock, shownAt) < PROGRESS_MS) return;
    shownAt = systemClock.instant();
    process.stderr.write(lineOf(now));
  };
  for await (const { text, isRepaired } of checkService(checked, report)) {
    if (isRepaired) repaired++;
    else damages++;
    console.log(text);
  }
  console.log(summaryOf(name, { damages, repaired }, progress));
  return damages === 0 ? 0 : 1;
}

/** Returns what is checked, and its name for people. */
function checkedBy(values: CheckValues, environment: NodeJS.ProcessEnv) {
  const { metadata, blocks, keepDeletedBlocksMs } = storesOf(values, environment);
  const { repair: repairs = false } = values;
  if (metadata !== undefined && blocks)
    return {
      checked: { metadata, blocks, keepDeletedBlocksMs, repairs },
      name: 'the database and its blocks',
    };
  const dataDirectory = serviceDirectory(values.data, environment);
  const bucket = blocks && 'address' in blocks ? blocks : undefined;
  return { checked: { dataDirectory, bucket, repairs }, name: dataDirectory };
}

function summaryOf(
  name: string,
  { damages, repaired }: { readonly damages: number; readonly repaired: number },
  { blocks, bytes, unowned = 0 }: CheckProgress,
): string {
  const later = unowned === 0 ? '' : `; ${unowned} more belong to no file yet, or no longer`;
  const seen = `(blocks: ${blocks}, ${sizeOf(bytes)}${later})`;
  const mended = repaired === 0 ? '' : `Repaired: ${linesOf(repaired)} above. `;
  return damages === 0
    ? `${mended}No damage in ${name} ${seen}.`
    : `${mended}Damage found: ${linesOf(damages)} above ${seen}. Restore the data from a backup.`;
}

/** Returns a line of progress, with the totals that are known. */
function lineOf({ blocks, bytes, totalBlocks, totalBytes }: CheckProgress): string {
  const ofBlocks = totalBlocks === undefined ? '' : ` of ${totalBlocks}`;
  const ofBytes = totalBytes === undefined ? '' : ` of ${sizeOf(totalBytes)}`;
  return `checked ${blocks}${ofBlocks} blocks, ${sizeOf(bytes)}${ofBytes}\n`;
}

function linesOf(count: number): string {
  return count === 1 ? '1 line' : `${count} lines`;
}

function sizeOf(bytes: number): string {
  return bytes < 1e9 ? `${(bytes / 1e6).toFixed(1)} MB` : `${(bytes / 1e9).toFixed(1)} GB`;
}
