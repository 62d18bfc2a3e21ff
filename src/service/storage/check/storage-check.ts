import { join } from 'node:path';
import type { SqliteDatabase } from '../../../util/sqlite/sqlite.ts';
import { blockPlaces } from '../blocks/block-places.ts';
import { BlockStore } from '../blocks/block-store.ts';
import type { BucketAccess } from '../blocks/bucket/bucket-address.ts';
import { BucketError } from '../blocks/bucket/bucket-error.ts';
import { readBlock } from '../blocks/content-reader.ts';
import { BLOCK_COLUMNS, type BlockRow, Contents } from '../blocks/contents.ts';
import { localDisk } from '../blocks/disk.ts';
import { DamagedBlockError } from '../errors.ts';
import { openExisting } from '../storage-database.ts';
import { Owners } from './block-owners.ts';
import type { Damage } from './damage.ts';
import { guarded, rowDamages } from './rows.ts';

/** Block rows looked up at once, and blocks read ahead while one is hashed. */
const WINDOW_BLOCKS = 64;
const READ_AHEAD_BLOCKS = 2;

/** Progress of a check. */
export interface CheckProgress {
  readonly blocks: number;
  readonly bytes: number;
  readonly totalBlocks: number;
  readonly totalBytes: number;
}

/** What is checked. */
export interface CheckedStorage {
  readonly dataDirectory: string;
  /** The bucket in which it has blocks. */
  readonly bucket?: BucketAccess | undefined;
}

/**
 * Reads every row and every byte of a data directory that no service has open, and changes nothing. Yields damages as
 * they are found. Throws `DataDirectoryError` when the directory cannot be read, and `BucketError`.
 */
export async function* checkStorage(
  { dataDirectory, bucket }: CheckedStorage,
  onProgress: (progress: CheckProgress) => void,
): AsyncGenerator<Damage, void, undefined> {
  const database = openExisting(join(dataDirectory, 'storage.sqlite'));
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
      yield* rowDamages(database, owners);
      yield* blockDamages({ database, contents, store, owners }, onProgress);
    } finally {
      await store.close();
    }
  } finally {
    database.close();
  }
}

interface BlockParts {
  readonly database: SqliteDatabase;
  readonly contents: Contents;
  readonly store: BlockStore;
  readonly owners: Owners;
}

/** Yields the damages of all blocks, in the database and in the block store. */
async function* blockDamages(
  { database, contents, store, owners }: BlockParts,
  onProgress: (progress: CheckProgress) => void,
): AsyncGenerator<Damage, void, undefined> {
  const totals = database
    .prepare<[], { totalBlocks: number; totalBytes: number }>(
      'SELECT count(*) AS totalBlocks, coalesce(sum(size), 0) AS totalBytes FROM block',
    )
    .get() ?? { totalBlocks: 0, totalBytes: 0 };
  let blocks = 0;
  let bytes = 0;
  for await (const { block, why } of readings(store, contents, database)) {
    blocks++;
    bytes += block.sizeBytes;
    if (why !== undefined) {
      const what = `block ${block.hash.toString('hex')}: ${why}`;
      yield* guarded(() => owners.ofBlock(what, block.id));
    }
    onProgress({ blocks, bytes, ...totals });
  }
}

interface Reading {
  readonly block: BlockRow;
  /** The damage; `undefined` for a good block. */
  readonly why: string | undefined;
}

/** Reads and verifies all blocks in order; the next ones are read while one is hashed. */
async function* readings(
  store: BlockStore,
  contents: Contents,
  database: SqliteDatabase,
): AsyncGenerator<Reading, void, undefined> {
  const window = database.prepare<[after: number, limit: number], BlockRow>(
    `SELECT ${BLOCK_COLUMNS} FROM block WHERE id > ? ORDER BY id LIMIT ?`,
  );
  const ahead: Promise<Reading>[] = [];
  for (let after = 0; ; ) {
    const some = window.all(after, WINDOW_BLOCKS);
    for (const block of some) {
      const reading = readingOf(store, contents, block);
      // It may fail before its turn comes, or another one that ends the check.
      reading.catch(() => undefined);
      ahead.push(reading);
      if (ahead.length > READ_AHEAD_BLOCKS) yield (await ahead.shift()) as Reading; // there are some: just counted
    }
    const last = some.at(-1);
    if (!last) break;
    after = last.id;
  }
  for (const reading of ahead) yield await reading;
}

async function readingOf(store: BlockStore, contents: Contents, block: BlockRow): Promise<Reading> {
  try {
    await readBlock(store, contents, block);
    return { block, why: undefined };
  } catch (failure) {
    if (failure instanceof DamagedBlockError) return { block, why: failure.why };
    if (failure instanceof BucketError) throw failure;
    return { block, why: `it cannot be read (${String(failure)})` };
  }
}
