import type { SqliteDatabase } from '../../../util/sqlite/sqlite.ts';
import type { BlockStore } from '../blocks/block-store.ts';
import { BucketError } from '../blocks/bucket/bucket-error.ts';
import { readBlock } from '../blocks/content-reader.ts';
import { BLOCK_COLUMNS, type BlockRow, type Contents } from '../blocks/contents.ts';
import { DamagedBlockError } from '../errors.ts';
import type { Owners } from './block-owners.ts';
import type { Damage } from './damage.ts';
import { guarded } from './rows.ts';

/** Block rows looked up at once, and blocks read ahead while one is hashed. */
const WINDOW_BLOCKS = 64;
const READ_AHEAD_BLOCKS = 2;

interface BlockDeps {
  readonly database: SqliteDatabase;
  readonly contents: Contents;
  readonly store: BlockStore;
  readonly owners: Owners;
  /** Whether the bytes of small blocks are elsewhere, and are not read. */
  readonly hasNoBytes?: boolean;
  /** Returns whether a block that cannot be read is still needed. */
  readonly isNeeded?: (block: BlockRow) => Promise<boolean>;
}

/** Yields the damages of all blocks, in the database and in the block store. Calls `onRead` after each block. */
export async function* blockDamages(
  deps: BlockDeps,
  onRead: (block: BlockRow) => void,
): AsyncGenerator<Damage, void, undefined> {
  const { owners, isNeeded } = deps;
  for await (const { block, why } of readings(deps)) {
    if (why !== undefined && (!isNeeded || (await isNeeded(block)))) yield* damagesOf(owners, block, why);
    onRead(block);
  }
}

/** Yields the damages of a block. */
export function damagesOf(
  owners: Owners,
  block: Pick<BlockRow, 'id' | 'hash'>,
  why: string,
): Generator<Damage, void, undefined> {
  return guarded(() => owners.ofBlock(`block ${block.hash.toString('hex')}: ${why}`, block.id));
}

interface Reading {
  readonly block: BlockRow;
  /** The damage; `undefined` for a good block. */
  readonly why: string | undefined;
}

/** Reads and verifies all blocks in order; the next ones are read while one is hashed. */
async function* readings({
  database,
  contents,
  store,
  hasNoBytes = false,
}: BlockDeps): AsyncGenerator<Reading, void, undefined> {
  const window = database.prepare<[after: number, limit: number], BlockRow>(
    `SELECT ${BLOCK_COLUMNS} FROM block WHERE id > ? ${hasNoBytes ? 'AND NOT inline' : ''} ORDER BY id LIMIT ?`,
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
