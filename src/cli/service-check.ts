import { type CheckProgress, checkService } from '../service/admin/check.ts';
import { elapsedMs, systemClock } from '../util/clock.ts';
import { serviceDirectory } from './service-directory.ts';
import { wordsOf } from './words.ts';

const HELP = `Looks at every block and every row of a storage service that is not running, and changes nothing.

Usage: davgate service check [--data DIR]

  --data DIR  its files; default $XDG_DATA_HOME/davgate-service. A drive's embedded service keeps them in
              DATA-DIR/service

Each damage is a line on standard output, with the account, the path and the revision it is in; how far it has come
goes to standard error. Exit code 0: nothing is damaged; 1: something is; 2: it could not be looked at.
`;

/** Between two lines that say how far the check has come, ms. */
const PROGRESS_MS = 5000;

/** `davgate service check`: the exit code. */
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
  let told = systemClock.instant();
  const tell = (now: CheckProgress) => {
    progress = now;
    if (elapsedMs(systemClock, told) < PROGRESS_MS) return;
    told = systemClock.instant();
    const { blocks, bytes, totalBlocks, totalBytes } = now;
    process.stderr.write(
      `checked ${blocks} of ${totalBlocks} blocks, ${sizeOf(bytes)} of ${sizeOf(totalBytes)}\n`,
    );
  };
  for await (const line of checkService(dataDirectory, tell)) {
    damages++;
    console.log(line);
  }
  const seen = `blocks: ${progress.blocks}, ${sizeOf(progress.bytes)}`;
  console.log(
    damages === 0
      ? `No damage in ${dataDirectory} (${seen}).`
      : `Damaged: ${damages} lines above (${seen}). Put the data back from a backup.`,
  );
  return damages === 0 ? 0 : 1;
}

function sizeOf(bytes: number): string {
  return bytes < 1e9 ? `${(bytes / 1e6).toFixed(1)} MB` : `${(bytes / 1e9).toFixed(1)} GB`;
}

function valuesOf(args: readonly string[]) {
  const options = { data: { type: 'string' }, help: { type: 'boolean' } } as const;
  return wordsOf('service check', args, options).values;
}
