import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Pool, PoolClient } from 'pg';
import { systemClock } from '../../../../util/clock.ts';
import type { SqliteDatabase } from '../../../../util/sqlite/sqlite.ts';
import { findRow, type Queries, rowsOf } from '../../../postgres/queries.ts';
import type { BlockPlace } from '../../blocks/block-place.ts';
import { BlockStore } from '../../blocks/block-store.ts';
import { type BlockRow, Contents } from '../../blocks/contents.ts';
import { localDisk } from '../../blocks/disk.ts';
import { IncomingFiles } from '../../blocks/incoming-files.ts';
import { Ticks } from '../../feed/ticks.ts';
import { inConnection } from '../../postgres/connections.ts';
import { JointCommits } from '../../postgres/joint-commits.ts';
import type { NamespaceRow } from '../../postgres/namespace-change.ts';
import { NamespaceCommitter } from '../../postgres/namespace-committer.ts';
import { NamespaceCopy } from '../../postgres/namespace-copy.ts';
import { beginWithLock, markOf, namespaceOf } from '../../postgres/namespace-rows.ts';
import { TABLES } from '../../postgres/tables.ts';
import { openDatabase } from '../../storage-database.ts';
import { NameIndex } from '../../tree/name-index.ts';
import { blockDamages, damagesOf } from '../block-damages.ts';
import { Owners } from '../block-owners.ts';
import { type Damage, rowDamage } from '../damage.ts';
import { repaired } from '../repair.ts';
import { derivedDamages, rowDamages } from '../rows.ts';
import { type Loaded, loadedRows, type WrongPlace } from './loaded-rows.ts';

export interface NamespaceCheckDeps {
  readonly pool: Pool;
  /** Where the blocks are; `undefined` if that is not known. */
  readonly place: BlockPlace | undefined;
  /** The last digits of every rev. */
  readonly tag: string;
  /** Folder for the copy of the rows. */
  readonly folder: string;
  readonly repairs: boolean;
  /** Called with the blocks that have been read. */
  readonly onRead: (blocks: number, bytes: number) => void;
}

/** Yields the damages of a namespace. Copies its rows as they are at one moment. */
export async function* namespaceDamages(
  deps: NamespaceCheckDeps,
  ns: number,
): AsyncGenerator<Damage, void, undefined> {
  const file = join(deps.folder, `${ns}.sqlite`);
  const database = await openDatabase(file, { isCopy: true });
  try {
    // The settings of a service are looked at once for all its namespaces. Nothing reads contents in the copy.
    database.exec(
      `INSERT INTO setting VALUES ('closed', 1), ('tag', '00000000'), ('cursor-key', zeroblob(32))`,
    );
    const copy = new NamespaceCopy(database, new NameIndex(database), ns, () => {});
    const moment = await inConnection(deps.pool, (client) => snapshot(client, copy, ns));
    if (!moment) return;
    const { name } = moment.namespace;
    for await (const damage of damagesIn(deps, database, copy, moment)) {
      const isNowhere = damage.at === undefined && damage.files.length === 0;
      yield isNowhere ? { ...damage, at: { namespace: name, path: '' } } : damage;
    }
  } finally {
    database.close();
    for (const suffix of ['', '-wal', '-shm']) await rm(file + suffix, { force: true });
  }
}

interface Moment {
  readonly namespace: NamespaceRow;
  readonly loaded: Loaded;
  readonly damages: readonly Damage[];
}

/** Copies the rows of a namespace; `undefined` if it has been removed. */
async function snapshot(client: PoolClient, copy: NamespaceCopy, ns: number): Promise<Moment | undefined> {
  await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');
  const namespace = await namespaceOf(client, ns);
  if (!namespace) return undefined;
  const loaded = await loadedRows(client, copy, namespace);
  const damages = await commitDamages(client, namespace);
  await client.query('COMMIT');
  return { namespace, loaded, damages };
}

/** Returns the damages of the record of commits. */
async function commitDamages(on: Queries, { id, version, mark }: NamespaceRow): Promise<readonly Damage[]> {
  const damages: Damage[] = [];
  if (version > 0 && (await markOf(on, id, version)) !== mark)
    damages.push(rowDamage('its last commit is not recorded: services load all of it after each change'));
  if (await findRow(on, 'SELECT 1 AS one FROM davgate.commit WHERE ns = $1 AND version > $2', id, version))
    damages.push(rowDamage('it has a commit after its last one: changes fail'));
  const newer = await rowsOf<{ name: string }>(
    on,
    TABLES.map(
      ({ name }) =>
        `SELECT '${name}' AS name WHERE EXISTS (SELECT FROM davgate.${name} WHERE ns = $1 AND version > $2)`,
    ).join(' UNION ALL '),
    id,
    version,
  );
  for (const { name } of newer)
    damages.push(rowDamage(`a row of the table davgate.${name} is newer than its last commit`));
  return damages;
}

async function* damagesIn(
  deps: NamespaceCheckDeps,
  database: SqliteDatabase,
  copy: NamespaceCopy,
  { namespace, loaded, damages }: Moment,
): AsyncGenerator<Damage, void, undefined> {
  const { pool, place, tag, onRead } = deps;
  const owners = new Owners(database, tag);
  yield* loaded.refused;
  yield* damages;
  yield* placeDamages(deps, namespace, loaded.wrongPlaces);
  // Counts that rows are missing from would be wrong.
  if (deps.repairs && loaded.refused.length === 0) yield* repairedRows(pool, database, copy, owners);
  else yield* rowDamages(database, owners);
  for (const { id, hash, why } of loaded.wrongBytes) yield* damagesOf(owners, { id, hash }, why);
  onRead(loaded.blocks, loaded.bytes);
  if (!place) return;
  const contents = new Contents(database);
  const places = { incoming: new IncomingFiles(deps.folder, localDisk), outer: place };
  const store = new BlockStore(places, contents);
  const isNeeded = (block: BlockRow) => isStillNamed(pool, namespace.id, block);
  yield* blockDamages({ database, contents, store, owners, hasNoBytes: true, isNeeded }, (block) =>
    onRead(1, block.sizeBytes),
  );
}

/** Whether a block has not been removed, as services may do, since its row was read. */
async function isStillNamed(on: Queries, ns: number, { hash, name }: BlockRow): Promise<boolean> {
  if (name === hash.toString('hex')) return true;
  const row = await findRow(
    on,
    'SELECT 1 AS one FROM davgate.block_name WHERE ns = $1 AND name = $2',
    ns,
    name,
  );
  return row !== undefined;
}

/** Yields the damages of rows. Repairs are a commit like any other, which services take over. */
async function* repairedRows(
  pool: Pool,
  database: SqliteDatabase,
  copy: NamespaceCopy,
  owners: Owners,
): AsyncGenerator<Damage, void, undefined> {
  const committer = new NamespaceCommitter({
    ...{ pool, database, copy, ticks: new Ticks(database, systemClock), clock: systemClock },
    joint: new JointCommits(pool, systemClock),
    committed: () => {},
    take: (change) => copy.apply(change),
    waitMs: Number.POSITIVE_INFINITY,
  });
  const again = () => derivedDamages(database, owners);
  yield* repaired(database, rowDamages(database, owners), again, (change) => committer.run(change));
}

/** Yields the rows of paths with wrong keys. One with the path of another row cannot be repaired. */
async function* placeDamages(
  { pool, repairs }: NamespaceCheckDeps,
  { id, name }: NamespaceRow,
  wrong: readonly WrongPlace[],
): AsyncGenerator<Damage, void, undefined> {
  for (const one of wrong) {
    const isRepaired = repairs && (await inConnection(pool, (client) => replace(client, id, one)));
    yield {
      ...rowDamage(`its row in the table ${one.table} is not where its path says`, {
        namespace: name,
        path: one.path,
      }),
      isRepaired,
    };
  }
}

/** Gives a row its right key unless another one has that. Returns whether it has done so. */
async function replace(
  client: PoolClient,
  ns: number,
  { table, place, right }: WrongPlace,
): Promise<boolean> {
  await beginWithLock(client, ns, LOCK_WAIT_MS);
  const { rowCount } = await client.query(
    `UPDATE davgate.${table} SET place = $3 WHERE ns = $1 AND place = $2
       AND NOT EXISTS (SELECT FROM davgate.${table} WHERE ns = $1 AND place = $3)`,
    [ns, place, right],
  );
  await client.query('COMMIT');
  return rowCount === 1;
}

/** How long a repair waits for commits of services, in ms. */
const LOCK_WAIT_MS = 30_000;
