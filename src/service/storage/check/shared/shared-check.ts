import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Pool } from 'pg';
import { sqlStateOf } from '../../../postgres/errors.ts';
import { findRow, type Queries, rowsOf } from '../../../postgres/queries.ts';
import type { BlockPlace } from '../../blocks/block-place.ts';
import type { BucketAccess } from '../../blocks/bucket/bucket-address.ts';
import { localDisk } from '../../blocks/disk.ts';
import { IncomingFiles } from '../../blocks/incoming-files.ts';
import { MIGRATIONS } from '../../postgres/migrations.ts';
import { keptMsIn } from '../../postgres/settings.ts';
import { existingSharedFolder } from '../../postgres/shared-folder.ts';
import { type Damage, rowDamage } from '../damage.ts';
import type { CheckProgress } from '../storage-check.ts';
import { type NamespaceCheckDeps, namespaceDamages } from './namespace-check.ts';
import { orphanDamages } from './orphans.ts';
import { missingTables, strayRows } from './tables-check.ts';

/** A storage with its metadata in PostgreSQL, which is checked. */
export interface CheckedSharedStorage {
  readonly pool: Pool;
  readonly blocks: BucketAccess | { readonly folder: string };
  /** How long its services keep blocks to which nothing refers, in ms, unless they know of a longer time. */
  readonly keepDeletedBlocksMs?: number | undefined;
  readonly repairs?: boolean | undefined;
}

/**
 * Reads every row and every byte of a storage with its metadata in PostgreSQL, beside the services that run on it, and changes
 * nothing unless it `repairs`. Yields damages as they are found. Throws `PostgresError`, `DataDirectoryError` and
 * `BucketError` if there is nothing to check.
 */
export async function* checkSharedStorage(
  { pool, blocks, keepDeletedBlocksMs, repairs = false }: CheckedSharedStorage,
  onProgress: (progress: CheckProgress) => void,
): AsyncGenerator<Damage, void, undefined> {
  const missing = await missingTables(pool, 'storage', MIGRATIONS);
  yield* missing;
  if (missing.length > 0) return;
  const counted = new Counted(await totalIn(pool), onProgress);
  const tag = (await settingOf(pool, 'tag', 4))?.toString('hex');
  if (tag === undefined || !(await settingOf(pool, 'cursor-key', 32)))
    yield rowDamage(
      'the tag of the service or the key of its cursors is missing or has another form: its blocks cannot be found, or cursors cannot be checked',
    );
  const folder = await mkdtemp(join(tmpdir(), 'davgate-check-'));
  const place = tag === undefined ? undefined : await placeOf(pool, blocks, tag, folder);
  const onRead = (count: number, bytes: number) => counted.add(count, bytes);
  try {
    yield* allNamespaces({ pool, place, tag: tag ?? '?', folder, repairs, onRead });
    const keptMs = await keptMsIn(pool, keepDeletedBlocksMs);
    const onUnowned = (count: number) => counted.addUnowned(count);
    if (place) yield* orphanDamages({ on: pool, blocks: place, keptMs, repairs, onUnowned });
  } finally {
    await place?.close();
    await rm(folder, { recursive: true, force: true });
  }
}

async function* allNamespaces(deps: NamespaceCheckDeps): AsyncGenerator<Damage, void, undefined> {
  const { pool } = deps;
  yield* inDatabase(strayRows(pool));
  const namespaces = await rowsOf<{ id: number; name: string }>(
    pool,
    'SELECT id, name FROM davgate.namespace ORDER BY id',
  );
  for (const { id, name } of namespaces)
    yield* inDatabase(namespaceDamages(deps, id), { namespace: name, path: '' });
}

/** Turns a statement that fails because of damage into a damage, so that the check goes on with what is left. */
async function* inDatabase(
  damages: AsyncIterable<Damage>,
  at?: Damage['at'],
): AsyncGenerator<Damage, void, undefined> {
  try {
    yield* damages;
  } catch (failure) {
    if (!(failure instanceof Error) || !OF_DAMAGE.test(sqlStateOf(failure))) throw failure;
    yield rowDamage(`the database cannot read it (${failure.message})`, at);
  }
}

/** SQLSTATEs of values that cannot be read, missing tables and columns, files that cannot be read, and damaged pages. */
const OF_DAMAGE = /^(22|42P01|42703|42883|58|XX)/;

/** Returns a setting of a service; `undefined` if it is missing or has another length. */
async function settingOf(on: Queries, name: string, bytes: number): Promise<Buffer | undefined> {
  const row = await findRow<{ value: Buffer }>(
    on,
    'SELECT value FROM davgate.setting WHERE name = $1 AND octet_length(value) = $2',
    name,
    bytes,
  );
  return row?.value;
}

/** Returns the estimated number of blocks of all namespaces: to count them takes longer than a statement may. */
async function totalIn(on: Queries): Promise<Pick<CheckProgress, 'totalBlocks'>> {
  const estimated = await findRow<{ totalBlocks: number }>(
    on,
    `SELECT reltuples::bigint AS "totalBlocks" FROM pg_catalog.pg_class
     WHERE oid = 'davgate.block'::regclass AND reltuples > 0`,
  );
  return estimated ?? {};
}

/** Returns where the blocks are, which is not changed. Throws `DataDirectoryError` or `BucketError` if they are not there. */
async function placeOf(
  on: Queries,
  blocks: CheckedSharedStorage['blocks'],
  tag: string,
  folder: string,
): Promise<BlockPlace> {
  const hasBlocks = (await findRow(on, 'SELECT 1 AS one FROM davgate.block_name LIMIT 1')) !== undefined;
  if ('folder' in blocks) return existingSharedFolder(blocks.folder, tag, hasBlocks);
  const { blockBucket } = await import('../../blocks/bucket/block-bucket.ts');
  const incoming = new IncomingFiles(folder, localDisk);
  const bucket = blockBucket({ access: blocks, directoryTag: tag, hasBlocks, incoming });
  await bucket.expectOwned();
  return bucket;
}

/** What has been read so far. */
class Counted {
  #blocks = 0;
  #bytes = 0;
  #unowned = 0;

  constructor(
    private readonly total: Pick<CheckProgress, 'totalBlocks'>,
    private readonly onProgress: (progress: CheckProgress) => void,
  ) {}

  add(blocks: number, bytes: number): void {
    this.#blocks += blocks;
    this.#bytes += bytes;
    this.#tell();
  }

  addUnowned(count: number): void {
    this.#unowned += count;
    this.#tell();
  }

  #tell(): void {
    this.onProgress({
      ...this.total,
      blocks: this.#blocks,
      bytes: this.#bytes,
      unowned: this.#unowned,
    });
  }
}
