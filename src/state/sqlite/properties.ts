import type { SqliteDatabase } from '../../util/sqlite/sqlite.ts';
import {
  type DeadProperties,
  type DeadProperty,
  PROPERTIES_BYTES_MAX,
  PropertiesFull,
  type PropertyChange,
} from '../properties.ts';
import { ById } from './by-id.ts';
import type { Commits } from './commits.ts';

type Properties = readonly DeadProperty[];

/** Approximate memory of the objects around one resource's properties, in bytes. */
const OVERHEAD_BYTES = 256;

/**
 * Dead properties by id. Each change rewrites all properties of its resource: they are few, and keep their order.
 */
export function sqliteProperties(database: SqliteDatabase, drive: number, commits: Commits): DeadProperties {
  const statements = prepare(database, drive);
  const byId = new ById<Properties>(statements.of, (value) => sizeBytesOf(value) + OVERHEAD_BYTES);
  let version = 0;
  commits.mirror(() => {
    byId.reset(statements.ids());
    version = statements.version();
  });

  const replace = (id: string, properties: Properties) => {
    statements.clear(id);
    for (const property of properties) statements.put(id, property);
    byId.changed(id, properties.length > 0);
  };
  const grow = () => {
    statements.grow();
    version += 1;
  };

  return {
    ...byId.reads,
    change: (id, changes) =>
      commits.run(() => {
        const properties = changed(byId.get(id) ?? [], changes);
        if (sizeBytesOf(properties) > PROPERTIES_BYTES_MAX)
          throw new PropertiesFull(
            `the properties of one resource may have at most ${PROPERTIES_BYTES_MAX} bytes together; remove some`,
          );
        replace(id, properties);
        grow();
      }),
    copy: (from, to) =>
      commits.run(() => {
        if (from === to || !(byId.has(from) || byId.has(to))) return;
        replace(to, byId.get(from) ?? []);
        grow();
      }),
    rename: (from, to) =>
      commits.run(() => {
        const properties = byId.get(from);
        if (from === to || !properties) return;
        replace(to, properties);
        replace(from, []);
        grow();
      }),
    forget: (ids) =>
      commits.run(() => {
        const known = ids.filter((id) => byId.has(id));
        if (known.length === 0) return;
        for (const id of known) replace(id, []);
        grow();
      }),
    version: async () => version,
  };
}

function changed(properties: Properties, changes: readonly PropertyChange[]): Properties {
  // JSON separates namespace and name, whatever characters they have.
  const keyOf = (name: { namespace: string; name: string }) => JSON.stringify([name.namespace, name.name]);
  const byName = new Map(properties.map((property) => [keyOf(property), property]));
  for (const change of changes) {
    if ('set' in change) byName.set(keyOf(change.set), change.set);
    else byName.delete(keyOf(change.remove));
  }
  return [...byName.values()];
}

function sizeBytesOf(properties: Properties): number {
  let sizeBytes = 0;
  for (const { namespace, name, xml } of properties)
    sizeBytes += Buffer.byteLength(namespace) + Buffer.byteLength(name) + Buffer.byteLength(xml);
  return sizeBytes;
}

function prepare(database: SqliteDatabase, drive: number) {
  const ids = database.prepare<[number], { id: string }>(
    'SELECT DISTINCT id FROM properties WHERE drive = ?',
  );
  const of = database.prepare<[number, string], DeadProperty>(
    'SELECT namespace, name, xml FROM properties WHERE drive = ? AND id = ? ORDER BY position',
  );
  const clear = database.prepare('DELETE FROM properties WHERE drive = ? AND id = ?');
  const put = database.prepare(
    'INSERT INTO properties (drive, id, namespace, name, xml) VALUES (?, ?, ?, ?, ?)',
  );
  const version = database.prepare<[number], { properties_version: number }>(
    'SELECT properties_version FROM drives WHERE drive = ?',
  );
  const grow = database.prepare(
    'UPDATE drives SET properties_version = properties_version + 1 WHERE drive = ?',
  );
  return {
    ids: () => ids.all(drive).map((row) => row.id),
    of: (id: string) => {
      const rows = of.all(drive, id);
      return rows.length > 0 ? rows : undefined;
    },
    clear: (id: string) => clear.run(drive, id),
    put: (id: string, { namespace, name, xml }: DeadProperty) => put.run(drive, id, namespace, name, xml),
    version: () => version.get(drive)?.properties_version ?? 0,
    grow: () => grow.run(drive),
  };
}
