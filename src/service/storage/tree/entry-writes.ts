import type { StagedBlock } from '../blocks/block-writer.ts';
import type { Contents } from '../blocks/contents.ts';
import type { Purge } from '../blocks/purge.ts';
import { hashOfBlocks } from '../blocks/staging.ts';
import type { Transaction } from '../committer.ts';
import { conflict } from '../errors.ts';
import { numberOf } from '../feed/ticks.ts';
import type { Commit } from '../storage.ts';
import { alternatives, malformed, type Place, renamed } from './places.ts';
import type { Stagings } from './stagings.ts';
import type { Tree } from './tree.ts';
import type { TreeRemovals } from './tree-removals.ts';
import type { EntryRow } from './tree-rows.ts';

/** The parts of the tree that the operations of a transaction change. */
export interface Store {
  readonly tree: Tree;
  readonly contents: Contents;
  readonly removals: TreeRemovals;
  readonly stagings: Stagings;
  readonly purge: Purge;
  /** Last digits of every rev of this data directory. */
  readonly directoryTag: string;
}

/** Commits a file's blocks as `commit` asks (service-api.md §9.2). */
export function writeFile(
  store: Store,
  transaction: Transaction,
  ns: number,
  commit: Commit,
  blocks: readonly StagedBlock[],
): EntryRow {
  const { tree, contents, directoryTag } = store;
  const place = tree.locate(ns, commit.path, 'write');
  if (!place) throw malformed('write');
  const existing = tree.find(ns, place);
  const decision = decide(existing, commit, hashOfBlocks(blocks), directoryTag);
  if (decision === 'keep' && existing) {
    // The file stays as it is, but its bytes may be damaged.
    contents.keep(blocks);
    return existing;
  }
  const target = decision === 'conflict' ? alternative(store, ns, place, commit, existing) : place;
  return tree.putFile(transaction, ns, target, {
    content: contents.keep(blocks),
    clientMs: commit.clientModifiedMs ?? transaction.nowMs,
  });
}

/** Makes a folder; with `autorename` under another name when the one asked for is taken. */
export function makeFolder(
  store: Store,
  transaction: Transaction,
  ns: number,
  path: string,
  autorename: boolean,
): EntryRow {
  const place = store.tree.locate(ns, path, 'write');
  if (!place) throw malformed('write');
  const existing = store.tree.find(ns, place);
  if (existing && !autorename) throw conflict(kindOf(existing));
  const target = existing ? freePlace(store.tree, ns, place, 'folder', conflict(kindOf(existing))) : place;
  return store.tree.putFolder(transaction, ns, target);
}

/** Returns the first free place that autorename would pick beside `place`. Throws `otherwise` when there is none. */
export function freePlace(
  tree: Tree,
  ns: number,
  place: Place,
  style: Parameters<typeof alternatives>[1],
  otherwise: Error,
): Place {
  for (const name of alternatives(place.names.at(-1) ?? '', style)) {
    const candidate = renamed(place, name);
    if (!tree.find(ns, candidate)) return candidate;
  }
  throw otherwise;
}

/** Returns the tag of the API's WriteConflictError. */
export function kindOf(row: EntryRow): 'file' | 'folder' {
  return row.revision === null ? 'folder' : 'file';
}

/** Decides what a write mode does with an existing entry (service-api.md §9.2). Identical content is kept. */
function decide(
  existing: EntryRow | undefined,
  { mode, strictConflict }: Commit,
  hash: string,
  directoryTag: string,
): 'write' | 'keep' | 'conflict' {
  if (!existing) return mode.tag === 'update' && strictConflict ? 'conflict' : 'write';
  if (existing.revision === null) return 'conflict';
  const identical = existing.hash === hash;
  const asExpected = mode.tag === 'update' && numberOf(mode.rev, directoryTag) === existing.revision;
  const free = mode.tag === 'overwrite' || asExpected;
  if (identical) return strictConflict && !free ? 'conflict' : 'keep';
  return free ? 'write' : 'conflict';
}

/** Returns the place that autorename gives to a write in conflict. Without autorename it throws the conflict. */
function alternative(
  { tree }: Store,
  ns: number,
  place: Place,
  commit: Commit,
  existing: EntryRow | undefined,
): Place {
  const otherwise = conflict(existing ? kindOf(existing) : 'file');
  if (!commit.autorename) throw otherwise;
  if (!existing) return place;
  return freePlace(tree, ns, place, commit.mode.tag === 'update' ? 'conflicted-copy' : 'file', otherwise);
}
