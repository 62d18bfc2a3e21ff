import type { Change } from '../committer.ts';
import type { NamespaceChange } from './namespace-change.ts';
import { type Row, TABLES } from './tables.ts';

/** Returns the paths that a change concerns, for the calls that wait for changes. */
export function changesIn({ namespace, rows }: NamespaceChange): Change[] {
  const { id: ns, tick } = namespace;
  const entries = placesIn('entry', rows).map(({ key, seq, isFile }) => ({ ns, key, seq, tree: !isFile }));
  const deletions = placesIn('deletion', rows).map(({ key, seq }) => ({ ns, key, seq, tree: true }));
  return [
    // Rows of a large move or copy have higher numbers until it is published.
    ...[...entries, ...deletions].filter(({ seq }) => seq <= tick),
    // It may have been published, or a tree removed.
    ...(rows.has('staging') || rows.has('removal') ? [{ ns, key: '', tree: true }] : []),
  ];
}

interface ChangedPlace {
  readonly key: string;
  readonly seq: number;
  readonly isFile: boolean;
}

function placesIn(name: string, rows: NamespaceChange['rows']): ChangedPlace[] {
  const columns = Object.keys(TABLES.find((table) => table.name === name)?.columns ?? {});
  const value = (row: Row, column: string) => row[columns.indexOf(column)];
  return (rows.get(name) ?? []).map((row) => ({
    key: `${value(row, 'parent')}${value(row, 'name_key')}`,
    seq: Number(value(row, 'seq')),
    isFile: typeof value(row, 'revision') === 'number',
  }));
}
