/** A bucket of an object store that speaks S3, and the part of it that is used. */
export interface BucketAddress {
  /** The store's URL, without a slash at the end. */
  readonly endpoint: string;
  readonly region: string;
  readonly bucket: string;
  /** The beginning of all keys: empty, or with a slash at its end. */
  readonly prefix: string;
}

/** The keys of a user of an object store. */
export interface BucketLogin {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
}

/** A bucket, and the login there. */
export interface BucketAccess {
  readonly address: BucketAddress;
  readonly login: BucketLogin;
}

/** The text is no address of a bucket; `message` says what is wrong and how one looks. */
export class BucketAddressError extends Error {
  override readonly name = 'BucketAddressError';
}

const EXAMPLE = 's3://BUCKET/FOLDER?endpoint=https://s3.example.com&region=us-east-1';

/** Returns the address in `s3://BUCKET[/FOLDER][?endpoint=URL][&region=NAME]`. Throws `BucketAddressError`. */
export function parseBucketAddress(text: string): BucketAddress {
  if (!text.startsWith('s3://') || !URL.canParse(text)) throw wrong(text, 'is not the address of a bucket');
  const url = new URL(text);
  if (url.username !== '' || url.password !== '')
    throw new BucketAddressError(
      'a key does not belong in the address: put it in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY',
    );
  if (!/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(url.host)) throw wrong(text, 'has no name of a bucket');
  for (const name of url.searchParams.keys())
    if (name !== 'endpoint' && name !== 'region') throw wrong(text, `has an unknown part "${name}"`);
  const region = url.searchParams.get('region') ?? 'us-east-1';
  const endpoint = url.searchParams.get('endpoint') ?? `https://s3.${region}.amazonaws.com`;
  if (!isEndpoint(endpoint))
    throw wrong(text, `has an endpoint that is not an https or http URL: ${endpoint}`);
  const folder = decodeURIComponent(url.pathname).replace(/^\/+|\/+$/g, '');
  return {
    endpoint: endpoint.replace(/\/+$/, ''),
    region,
    bucket: url.host,
    prefix: folder === '' ? '' : `${folder}/`,
  };
}

function isEndpoint(text: string): boolean {
  return URL.canParse(text) && /^https?:$/.test(new URL(text).protocol) && new URL(text).pathname === '/';
}

function wrong(text: string, what: string): BucketAddressError {
  return new BucketAddressError(`"${text}" ${what}; write for example ${EXAMPLE}`);
}

/** Returns the bucket and folder, for messages. */
export function bucketText({ bucket, prefix }: BucketAddress): string {
  return `s3://${bucket}/${prefix}`.replace(/\/$/, '');
}
