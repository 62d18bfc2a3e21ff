import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Pool, PoolClient } from 'pg';
import { databaseName } from '../postgres/connect.ts';
import { expectNoCopy } from '../postgres/migrate.ts';
import { findRow, rowsOf } from '../postgres/queries.ts';
import { blockFolder } from '../storage/blocks/block-folder.ts';
import type { BlockPlace } from '../storage/blocks/block-place.ts';
import { BlockStore } from '../storage/blocks/block-store.ts';
import { localDisk } from '../storage/blocks/disk.ts';
import { IncomingFiles } from '../storage/blocks/incoming-files.ts';
import { CopyError } from './copy-error.ts';
import { expectCurrent, expectUnused, explaining, openCopyPool, postgresRows } from './postgres-side.ts';
import type { CopySource, OuterBlock, Rows, ServicePlace } from './sides.ts';

type Place = Extract<ServicePlace, { metadata: string }>;

/** Blocks that are looked up at once. */
const WINDOW_BLOCKS = 1000;

/** Opens a service in PostgreSQL that does not run, to copy it. Throws `PostgresError`, `BucketError` and `CopyError`. */
export async function openPostgresSource({ metadata, blocks }: Place): Promise<CopySource> {
  const pool = openCopyPool(metadata);
  try {
    return await explaining(pool, () => openSource(pool, blocks));
  } catch (failure) {
    await pool.end();
    throw failure;
  }
}

async function openSource(pool: Pool, blocks: Place['blocks']): Promise<CopySource> {
  const name = databaseName(pool);
  await expectNoCopy(pool, name);
  await expectCurrent(
    pool,
    'has no service of this version of davgate: name its database, or start davgate service on it once, which upgrades it, and stop that',
  );
  await expectUnused(pool);
  const tag = (await settingOf(pool, 'tag'))?.toString('hex');
  const cursorKey = await settingOf(pool, 'cursor-key');
  if (tag === undefined || cursorKey === undefined)
    throw new CopyError(`${name} has no service: nothing was ever stored there`);
  const place = await placeOf(blocks, tag);
  // Only read, for which it needs to know nothing of blocks.
  const store = new BlockStore(
    { incoming: new IncomingFiles(tmpdir(), localDisk), outer: place },
    { isClosed: true, nameOf: () => undefined },
  );
  let client: PoolClient | undefined;
  const rows: Rows = {
    dialect: 'postgres',
    async *read(query, atOnce) {
      if (!client) throw new Error('the rows are read before refresh');
      yield* postgresRows(client).read(query, atOnce);
    },
  };
  return {
    name,
    keys: { tag, cursorKey },
    storage: rows,
    directory: rows,
    blocks: () => blocksIn(pool),
    read: (block) => store.read(block),
    async refresh() {
      if (client) await client.query('COMMIT');
      client ??= await pool.connect();
      await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');
      await expectUnused(pool);
    },
    async close() {
      client?.release(true);
      await place.close();
      await pool.end();
    },
  };
}

async function settingOf(pool: Pool, name: string): Promise<Buffer | undefined> {
  const row = await findRow<{ value: Buffer }>(
    pool,
    'SELECT value FROM davgate.setting WHERE name = $1',
    name,
  );
  return row?.value;
}

/** Returns the place of the blocks, in which nothing is made. */
async function placeOf(blocks: Place['blocks'], tag: string): Promise<BlockPlace> {
  if ('folder' in blocks) {
    const own = join(blocks.folder, tag);
    if (!existsSync(own))
      throw new CopyError(
        `${blocks.folder} does not have the blocks of this service: mount it, or give the folder that the service had`,
      );
    return blockFolder(own, localDisk);
  }
  const { blockBucket } = await import('../storage/blocks/bucket/block-bucket.ts');
  const incoming = new IncomingFiles(tmpdir(), localDisk);
  return blockBucket({ access: blocks, directoryTag: tag, hasBlocks: true, incoming });
}

async function* blocksIn(pool: Pool): AsyncGenerator<OuterBlock> {
  let [ns, id] = [0, 0];
  for (;;) {
    const rows = await rowsOf<OuterBlock & { readonly ns: number; readonly id: number }>(
      pool,
      `SELECT block.ns, block.id, block.hash, block.size AS "sizeBytes", block_name.name
       FROM davgate.block JOIN davgate.block_name ON block_name.ns = block.ns AND block_name.block = block.id
       WHERE block.inline = 0 AND (block.ns, block.id) > ($1, $2)
       ORDER BY block.ns, block.id LIMIT ${WINDOW_BLOCKS}`,
      ns,
      id,
    );
    yield* rows;
    const last = rows.at(-1);
    if (!last) return;
    ({ ns, id } = last);
  }
}
