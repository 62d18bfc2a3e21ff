import { isAbsolute } from 'node:path';
import { ConfigError, METADATA_VARIABLE } from '../config/settings.ts';
import {
  type BucketAccess,
  BucketAddressError,
  parseBucketAddress,
} from '../service/storage/blocks/bucket/bucket-address.ts';
import type { StoreOptions } from '../service/stores.ts';

/**
 * Returns the bucket of `--blocks`, or of another option, with the keys of the environment; `undefined` without it. Throws
 * `ConfigError`.
 */
export function bucketOf(
  blocks: string | undefined,
  environment: NodeJS.ProcessEnv,
  option = '--blocks',
): BucketAccess | undefined {
  if (blocks === undefined) return undefined;
  const { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey } = environment;
  const address = addressOf(blocks, option);
  if (!accessKeyId || !secretAccessKey)
    throw new ConfigError(
      `${option}: a bucket needs a login; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment`,
    );
  const { AWS_SESSION_TOKEN: sessionToken } = environment;
  return { address, login: { accessKeyId, secretAccessKey, ...(sessionToken && { sessionToken }) } };
}

/** Where a service has its data beside its directory. */
export type ServiceStores = Pick<StoreOptions, 'metadata' | 'blocks' | 'keepDeletedBlocksMs'>;

/** Values of the options that say it. */
export interface StoreValues {
  readonly metadata?: string;
  readonly blocks?: string;
  /** In days. */
  readonly keepDeletedBlocks?: string;
}

const DAY_MS = 24 * 60 * 60 * 1000;

/** Returns what `--metadata`, `--blocks` and `--keep-deleted-blocks` say. Throws `ConfigError`. */
export function storesOf(
  { metadata: text, blocks, keepDeletedBlocks }: StoreValues,
  environment: NodeJS.ProcessEnv,
): ServiceStores {
  const metadata = text ?? environment[METADATA_VARIABLE];
  if (metadata === undefined) {
    if (keepDeletedBlocks !== undefined)
      throw new ConfigError(
        '--keep-deleted-blocks: works with --metadata only; give that too, or leave it out',
      );
    const bucket = bucketOf(blocks, environment);
    return bucket ? { blocks: bucket } : {};
  }
  if (blocks === undefined)
    throw new ConfigError(
      '--metadata: the contents of files need a place that all services reach; give --blocks s3://BUCKET or --blocks /SHARED/FOLDER',
    );
  const inFolder = isAbsolute(blocks) ? { folder: blocks } : undefined;
  const place = inFolder ?? bucketOf(blocks, environment);
  const kept =
    keepDeletedBlocks === undefined ? {} : { keepDeletedBlocksMs: daysOf(keepDeletedBlocks) * DAY_MS };
  return { metadata, ...(place && { blocks: place }), ...kept };
}

function daysOf(text: string): number {
  if (/^\d{1,4}$/.test(text)) return Number(text);
  throw new ConfigError(`--keep-deleted-blocks: "${text}" is not a number of days; write it like 7`);
}

function addressOf(blocks: string, option: string): BucketAccess['address'] {
  try {
    return parseBucketAddress(blocks);
  } catch (error) {
    if (error instanceof BucketAddressError) throw new ConfigError(`${option}: ${error.message}`);
    throw error;
  }
}
