import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { Contents } from '../../../src/service/storage/blocks/contents.ts';
import { Purge } from '../../../src/service/storage/blocks/purge.ts';
import type { Transaction } from '../../../src/service/storage/committer.ts';
import { Ticks } from '../../../src/service/storage/feed/ticks.ts';
import { openDatabase } from '../../../src/service/storage/storage-database.ts';
import { NameIndex } from '../../../src/service/storage/tree/name-index.ts';
import { type Place, placeOf } from '../../../src/service/storage/tree/places.ts';
import { Tree } from '../../../src/service/storage/tree/tree.ts';
import { TreeRemovals } from '../../../src/service/storage/tree/tree-removals.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { temporaryFolder } from './opened.ts';

/** Opens a tree with one empty namespace, number 1. Nothing runs in the background: the test itself makes each step. */
export async function openedTree() {
  const database = await openDatabase(join(await temporaryFolder(), 'storage.sqlite'));
  onTestFinished(() => void database.close());
  database.exec(`INSERT INTO namespace (name, limit_bytes) VALUES ('home', 1)`);
  let ids = 0;
  const contents = new Contents(database);
  const purge = new Purge(database, contents);
  const removals = new TreeRemovals(database, contents, purge);
  const tree = new Tree(database, contents, new NameIndex(database), removals, () => `id:${ids++}`);
  const ticks = new Ticks(database, new ManualClock());
  return {
    database,
    purge,
    removals,
    tree,
    /** Returns a transaction with room for so many rows. */
    transaction: (rows: number): Transaction => ({
      nowMs: 0,
      ticks,
      room: { rows },
      changes: [],
      orphans: [],
      isFull: () => false,
    }),
    count: (table: string) => Number(database.prepare(`SELECT count(*) FROM ${table}`).pluck().get()),
  };
}

/** Returns the place of a path that can be written to. */
export function at(path: string): Place {
  const place = placeOf(path, 'write');
  if (!place) throw new Error('the root is no place');
  return place;
}
