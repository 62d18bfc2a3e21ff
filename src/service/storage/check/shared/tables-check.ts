import type { Pool } from 'pg';
import { databaseName } from '../../../postgres/connect.ts';
import { PostgresError } from '../../../postgres/errors.ts';
import { versionOf } from '../../../postgres/migrate.ts';
import { type Queries, rowsOf } from '../../../postgres/queries.ts';
import { TABLES } from '../../postgres/tables.ts';
import { type Damage, rowDamage } from '../damage.ts';

/** Without the table of versions nothing can be said of the others. */
export const NO_VERSIONS = missing('table davgate.schema');

/**
 * Returns the tables that a part of a service's database lacks, and columns of those of `TABLES`. Throws `PostgresError` for a
 * database of another version.
 */
export async function missingTables(
  pool: Pool,
  part: string,
  steps: readonly string[],
): Promise<readonly Damage[]> {
  const columns = await columnsIn(pool);
  if (columns.size === 0)
    throw new PostgresError(
      'unusable',
      `${databaseName(pool)} contains no storage service: check its address`,
    );
  if (!columns.has('schema')) return [NO_VERSIONS];
  await expectVersion(pool, part, steps.length);
  const made = tablesMadeBy(steps);
  return [
    ...made.filter((name) => !columns.has(name)).map((name) => missing(`table davgate.${name}`)),
    ...TABLES.filter(({ name }) => made.includes(name)).flatMap((table) => {
      const there = columns.get(table.name);
      const needed = [...Object.keys(table.columns), 'ns', 'version', ...(table.hasPlace ? ['place'] : [])];
      return needed
        .filter((column) => there !== undefined && !there.has(column))
        .map((column) => missing(`column ${column} of the table davgate.${table.name}`));
    }),
  ];
}

function missing(what: string): Damage {
  return rowDamage(`the database has lost its ${what}: its rows cannot be checked`);
}

/** Returns the names of the columns by table. From the catalog, which tells them whatever the user may read. */
async function columnsIn(on: Queries): Promise<ReadonlyMap<string, ReadonlySet<string>>> {
  const rows = await rowsOf<{ name: string; columns: string[] }>(
    on,
    `SELECT relname::text AS name, array_agg(attname::text) AS columns
     FROM pg_catalog.pg_class JOIN pg_catalog.pg_attribute ON attrelid = pg_class.oid
     WHERE relnamespace = (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = 'davgate')
       AND relkind IN ('r', 'p') AND attnum > 0 AND NOT attisdropped
     GROUP BY relname`,
  );
  return new Map(rows.map(({ name, columns }) => [name, new Set(columns)]));
}

async function expectVersion(pool: Pool, part: string, known: number): Promise<void> {
  const version = await versionOf(pool, part);
  if (version === known) return;
  const name = databaseName(pool);
  throw version > known
    ? new PostgresError('newer', `${name} was written by a newer davgate: run the check of that version`)
    : new PostgresError(
        'unusable',
        `${name} was written by an older davgate: start a service once, which upgrades it`,
      );
}

/** Returns the names of the tables that the steps of a schema make and leave. */
function tablesMadeBy(steps: readonly string[]): readonly string[] {
  const names = new Set<string>();
  for (const step of steps)
    for (const [, verb, name = ''] of step.matchAll(
      /\b(CREATE|DROP) TABLE (?:IF \w+ (?:NOT )?EXISTS )?davgate\.(\w+)/g,
    ))
      if (verb === 'CREATE') names.add(name);
      else names.delete(name);
  return [...names];
}

/** Yields the tables with rows of namespaces that do not exist. */
export async function* strayRows(on: Queries): AsyncGenerator<Damage> {
  for (const name of [...TABLES.map((table) => table.name), 'commit']) {
    // Each number of a namespace costs one look at the index, whatever its rows.
    const rows = await rowsOf<{ ns: number }>(
      on,
      `WITH RECURSIVE seen AS (
         SELECT min(ns) AS ns FROM davgate.${name}
         UNION ALL SELECT (SELECT min(ns) FROM davgate.${name} WHERE ns > seen.ns) FROM seen WHERE ns IS NOT NULL)
       SELECT ns FROM seen WHERE ns IS NOT NULL AND NOT EXISTS (SELECT FROM davgate.namespace WHERE id = ns)`,
    );
    for (const { ns } of rows)
      yield rowDamage(
        `rows of the table davgate.${name} belong to the namespace number ${ns}, which is missing`,
      );
  }
}
