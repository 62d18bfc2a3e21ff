import { isAbsolute, resolve } from 'node:path';
import { ConfigError } from '../config/settings.ts';
import { type CopyProgress, copyService } from '../service/copy/copy-service.ts';
import type { ServicePlace } from '../service/copy/sides.ts';
import { elapsedMs, systemClock } from '../util/clock.ts';
import { sizeText } from '../util/size-text.ts';
import { bucketOf } from './service-stores.ts';

/** Time between two lines of progress, in ms. */
const PROGRESS_MS = 5000;

/** Values of the options of `davgate service copy`. */
export interface CopyValues {
  readonly from?: string;
  readonly fromBlocks?: string;
  readonly to?: string;
  readonly toBlocks?: string;
}

/** `davgate service copy`. */
export async function serviceCopyCommand(
  { from, fromBlocks, to, toBlocks }: CopyValues,
  environment: NodeJS.ProcessEnv,
): Promise<void> {
  const places = {
    from: placeOf('--from', from, fromBlocks, environment),
    to: placeOf('--to', to, toBlocks, environment),
  };
  let shownAt = systemClock.instant();
  const done = await copyService(places, (progress) => {
    if (elapsedMs(systemClock, shownAt) < PROGRESS_MS) return;
    shownAt = systemClock.instant();
    process.stderr.write(`${progressText(progress)}\n`);
  });
  const { namespaces, rows, blocks, bytes, earlierBlocks } = done;
  const earlier = earlierBlocks > 0 ? `, ${earlierBlocks} of them by an earlier attempt` : '';
  console.log(
    `Copied ${namespaces} namespaces and ${blocks} blocks (${sizeText(bytes)}${earlier}). ${rows} rows are equal on both sides.`,
  );
}

function progressText({ step, blocks, bytes, namespaces }: CopyProgress): string {
  if (step === 'blocks') return `copied ${blocks} blocks, ${sizeText(bytes)}`;
  return step === 'rows' ? `copied the rows of ${namespaces} namespaces` : 'comparing both sides';
}

/** Returns the place that an option and its `…-blocks` name. Throws `ConfigError`. */
function placeOf(
  option: '--from' | '--to',
  place: string | undefined,
  blocks: string | undefined,
  environment: NodeJS.ProcessEnv,
): ServicePlace {
  const blocksOption = `${option}-blocks`;
  if (place === undefined || place === '')
    throw new ConfigError(
      `${option}: name a data directory, or a database with postgres://USER@HOST/DATABASE`,
    );
  if (!/^postgres(ql)?:\/\//.test(place)) {
    if (blocks !== undefined && isAbsolute(blocks))
      throw new ConfigError(
        `${blocksOption}: the blocks of a data directory are in it or in a bucket; leave it out, or give s3://BUCKET`,
      );
    return { dataDirectory: resolve(place), blocks: bucketOf(blocks, environment, blocksOption) };
  }
  if (blocks === undefined)
    throw new ConfigError(
      `${blocksOption}: a service in PostgreSQL has its blocks elsewhere; give s3://BUCKET or /SHARED/FOLDER`,
    );
  const bucket = isAbsolute(blocks) ? { folder: blocks } : bucketOf(blocks, environment, blocksOption);
  return { metadata: place, blocks: bucket ?? { folder: blocks } };
}
