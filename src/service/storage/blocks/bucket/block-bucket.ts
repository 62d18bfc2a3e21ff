import { createHash, randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import PQueue from 'p-queue';
import { systemClock } from '../../../../util/clock.ts';
import { type BlockPlace, hashIn, LostBlockError, uniqueName } from '../block-place.ts';
import type { IncomingFiles } from '../incoming-files.ts';
import { Bucket } from './bucket.ts';
import { type BucketAccess, bucketText } from './bucket-address.ts';
import { BucketError } from './bucket-error.ts';

/** Blocks that are sent at the same time; each is in memory meanwhile. */
const SENT_AT_ONCE = 8;

/** The object that says which service has its blocks in a folder of a bucket. */
const OWNER = 'owner';

/** What the bucket of a service is opened with. */
interface BlockBucketDeps {
  readonly access: BucketAccess;
  /** The service's own folder in the bucket: two services never meet in one. */
  readonly directoryTag: string;
  /** Whether the service has blocks in a bucket already. */
  readonly hasBlocks: boolean;
  readonly incoming: IncomingFiles;
  /** How long the store may be silent, in ms. */
  readonly silenceMs?: number;
}

/** The blocks of a service in a bucket. */
export interface BlockBucket extends BlockPlace {
  /** Throws `BucketError` if the service has blocks and they are not here. Changes nothing, unlike `prepare`. */
  expectOwned(): Promise<void>;
}

/** Returns the blocks of a service in a bucket. */
export function blockBucket(deps: BlockBucketDeps): BlockBucket {
  const { access, directoryTag, hasBlocks, incoming, silenceMs } = deps;
  const bucket = new Bucket(access, silenceMs);
  const folder = `${access.address.prefix}${directoryTag}/`;
  const sending = new PQueue({ concurrency: SENT_AT_ONCE });

  /** Whether the service has taken the folder. Throws `BucketError` if its blocks are in another one. */
  async function isOwned(): Promise<boolean> {
    const owner = await bucket.get(`${folder}${OWNER}`, Buffer.alloc(directoryTag.length + 1));
    if (owner?.toString() === directoryTag) return true;
    if (hasBlocks)
      throw new BucketError(
        `${bucketText(access.address)} does not have the blocks of this service: give the bucket and folder that it had, or copy them there first`,
      );
    return false;
  }

  async function claim(): Promise<void> {
    if (!(await isOwned())) await put(OWNER, Buffer.from(directoryTag));
  }

  /** Throws `BucketError` if the login does not suffice. */
  async function tryOut(): Promise<void> {
    const name = `trial-${randomUUID()}`;
    await put(name, Buffer.from(name));
    const found = await bucket.get(`${folder}${name}`, Buffer.alloc(name.length));
    // A listing may show it later.
    for await (const _ of bucket.keys(`${folder}trial-`));
    await bucket.remove(`${folder}${name}`);
    if (found?.toString() !== name)
      throw new BucketError(`${bucketText(access.address)} does not show at once what was put there`);
  }

  const put = (name: string, bytes: Buffer) =>
    bucket.put(`${folder}${name}`, bytes, createHash('sha256').update(bytes).digest('hex'));

  return {
    isRemote: true,
    async prepare() {
      try {
        await claim();
        await tryOut();
      } catch (failure) {
        await bucket.close();
        throw failure;
      }
    },
    async expectOwned() {
      await isOwned();
    },
    newName: uniqueName,
    keep(name, file) {
      const since = systemClock.instant();
      return sending.add(async () => {
        await file.file.close();
        // It would only wait as long as those before it.
        bucket.expectAnswering(since);
        // The store refuses bytes that have changed on the way, and so since they arrived.
        await bucket.put(`${folder}${name}`, await readFile(file.path), hashIn(name) ?? '');
        await incoming.drop(file);
      });
    },
    // An answered put is durable.
    sync: () => Promise.resolve(),
    async read(name, sizeBytes, into = Buffer.allocUnsafeSlow(sizeBytes), start = 0) {
      const bytes = await bucket.get(`${folder}${name}`, into.subarray(0, sizeBytes), start);
      if (!bytes) throw new LostBlockError('its object is missing');
      return bytes;
    },
    remove: (name) => bucket.remove(`${folder}${name}`),
    async *names() {
      for await (const key of bucket.keys(folder)) yield key.slice(folder.length);
    },
    close: () => bucket.close(),
  };
}
