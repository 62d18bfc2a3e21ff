import { ConfigError } from '../config/settings.ts';
import {
  type BucketAccess,
  BucketAddressError,
  parseBucketAddress,
} from '../service/storage/blocks/bucket/bucket-address.ts';

/** Returns the bucket of `--blocks` with the keys of the environment; `undefined` without it. Throws `ConfigError`. */
export function bucketOf(
  blocks: string | undefined,
  environment: NodeJS.ProcessEnv,
): BucketAccess | undefined {
  if (blocks === undefined) return undefined;
  const { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey } = environment;
  const address = addressOf(blocks);
  if (!accessKeyId || !secretAccessKey)
    throw new ConfigError(
      '--blocks: a bucket needs a login; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment',
    );
  const { AWS_SESSION_TOKEN: sessionToken } = environment;
  return { address, login: { accessKeyId, secretAccessKey, ...(sessionToken && { sessionToken }) } };
}

function addressOf(blocks: string): BucketAccess['address'] {
  try {
    return parseBucketAddress(blocks);
  } catch (error) {
    if (error instanceof BucketAddressError) throw new ConfigError(`--blocks: ${error.message}`);
    throw error;
  }
}
