import { type CheckProgress, checkService } from '../service/admin/check.ts';
import { elapsedMs, systemClock } from '../util/clock.ts';
import { optionsOf } from './arguments.ts';
import { serviceDirectory } from './service-directory.ts';

const HELP = `Checks every block and every row of a stopped storage service, and changes nothing.

Usage: davgate service check [--data DIR]

  --data DIR  its files; default $XDG_DATA_HOME/davgate-service. A drive's embedded service keeps them in
              DATA-DIR/service

Prints one line per damaged item on standard output, with its account, path and revision, and its progress on standard
error. Exit code 0: no damage; 1: damage was found; 2: the check could not be run.
`;

/** Time between two lines of progress, in ms. */
const PROGRESS_MS = 5000;

/** `davgate service check`: returns the exit code. */
export async function serviceCheckCommand(
  args: readonly string[],
  environment: NodeJS.ProcessEnv,
): Promise<number> {
  const { data, help } = valuesOf(args);
  if (help) {
    console.log(HELP);
    return 0;
  }
  const dataDirectory = serviceDirectory(data, environment);
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
  for await (const line of checkService(dataDirectory, report)) {
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

function valuesOf(args: readonly string[]) {
  const options = { data: { type: 'string' }, help: { type: 'boolean' } } as const;
  return optionsOf('service check', args, options).values;
}
