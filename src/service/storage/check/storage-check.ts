import { join } from 'node:path';
import type { SqliteDatabase } from '../../../util/sqlite/sqlite.ts';
import { blockPlaces } from '../blocks/block-places.ts';
import { BlockStore } from '../blocks/block-store.ts';
import type { BucketAccess } from '../blocks/bucket/bucket-address.ts';
import { Contents } from '../blocks/contents.ts';
import { localDisk } from '../blocks/disk.ts';
import { openExisting } from '../storage-database.ts';
import { blockDamages } from './block-damages.ts';
import { Owners } from './block-owners.ts';
import type { Damage } from './damage.ts';
import { repaired } from './repair.ts';
import { derivedDamages, rowDamages } from './rows.ts';

/** Progress of a check. */
export interface CheckProgress {
  readonly blocks: number;
  readonly bytes: number;
  /** Estimated for a database, and absent if it has no estimate. */
  readonly totalBlocks?: number;
  readonly totalBytes?: number;
  /** Stored blocks that belong to nothing, perhaps because their upload is under way. */
  readonly unowned?: number;
}

/** What is checked. */
export interface CheckedStorage {
  readonly dataDirectory: string;
  /** The bucket in which it has blocks. */
  readonly bucket?: BucketAccess | undefined;
  /** Whether rows are repaired that can be made from others. */
  readonly repairs?: boolean;
}

/**
 * Reads every row and every byte of a data directory that no service has open, and changes nothing unless it `repairs`.
 * Yields damages as they are found. Throws `DataDirectoryError` when the directory cannot be read, and `BucketError`.
 */
export async function* checkStorage(
  { dataDirectory, bucket, repairs = false }: CheckedStorage,
  onProgress: (progress: CheckProgress) => void,
): AsyncGenerator<Damage, void, undefined> {
  const database = openExisting(join(dataDirectory, 'storage.sqlite'), { isCurrent: repairs });
  try {
    const tag = database
      .prepare<[], { value: unknown }>(`SELECT value FROM setting WHERE name = 'tag'`)
      .get();
    const directoryTag = String(tag?.value ?? '?');
    const owners = new Owners(database, directoryTag);
    const contents = new Contents(database);
    const parts = { dataDirectory, disk: localDisk, contents, directoryTag, access: bucket };
    const store = new BlockStore(await blockPlaces(parts), contents);
    try {
      if (repairs) yield* repairedRows(database, owners);
      else yield* rowDamages(database, owners);
      yield* blockDamages({ database, contents, store, owners }, countingIn(database, onProgress));
    } finally {
      await store.close();
    }
  } finally {
    database.close();
  }
}

async function* repairedRows(
  database: SqliteDatabase,
  owners: Owners,
): AsyncGenerator<Damage, void, undefined> {
  database.pragma('query_only = OFF');
  const again = () => derivedDamages(database, owners);
  yield* repaired(database, rowDamages(database, owners), again, async (change) => {
    database.transaction(change)();
  });
  database.pragma('query_only = ON');
}

/** Returns a function that counts blocks that have been read. */
function countingIn(
  database: SqliteDatabase,
  onProgress: (progress: CheckProgress) => void,
): (block: { readonly sizeBytes: number }) => void {
  const totals = database
    .prepare<[], { totalBlocks: number; totalBytes: number }>(
      'SELECT count(*) AS totalBlocks, coalesce(sum(size), 0) AS totalBytes FROM block',
    )
    .get() ?? { totalBlocks: 0, totalBytes: 0 };
  let blocks = 0;
  let bytes = 0;
  return ({ sizeBytes }) => {
    blocks++;
    bytes += sizeBytes;
    onProgress({ blocks, bytes, ...totals });
  };
}
