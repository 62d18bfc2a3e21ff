import { randomBytes } from 'node:crypto';
import type { Clock } from '../../util/clock.ts';
import type { Log } from '../../util/log.ts';
import type { SqliteDatabase } from '../../util/sqlite/sqlite.ts';
import { Background } from './background.ts';
import type { BlockStore } from './blocks/block-store.ts';
import type { Contents } from './blocks/contents.ts';
import { Purge } from './blocks/purge.ts';
import type { Reserve } from './blocks/reserve.ts';
import type { Committer, Transaction } from './committer.ts';
import { Cursors, type SeenCommit } from './feed/cursors.ts';
import { Ticks } from './feed/ticks.ts';
import { Watchers } from './feed/watchers.ts';
import { Housekeeping } from './housekeeping/housekeeping.ts';
import { Retention } from './housekeeping/retention.ts';
import type { Parts } from './local-storage.ts';
import { Sessions } from './sessions/sessions.ts';
import { Uploads } from './sessions/uploads.ts';
import { Listings } from './tree/listing.ts';
import { NameIndex } from './tree/name-index.ts';
import { Relocations } from './tree/relocations.ts';
import { Stagings } from './tree/stagings.ts';
import { Tree } from './tree/tree.ts';
import { TreeRemovals } from './tree/tree-removals.ts';

/** What a storage over a database is assembled from. */
export interface Base {
  readonly database: SqliteDatabase;
  readonly contents: Contents;
  readonly blocks: BlockStore;
  /** The last digits of every rev, which cursors begin with. */
  readonly directoryTag: string;
  /** The key that signs cursors. */
  readonly cursorKey: Buffer;
  /** See `CursorState.commit`. */
  readonly lastCommit?: () => SeenCommit;
  /** Returns the id for a new file or folder: `id:` and 22 base64url characters, case-sensitive. */
  readonly mintId?: (() => string) | undefined;
  readonly clock: Clock;
  readonly log: Log;
  /** See `StorageOptions`. */
  readonly stagedRowsMax?: number | undefined;
  /** Whether unreferenced blocks may exist. */
  readonly mustSearchBlocks: boolean;
  /** Whether the database is a copy, in which the words of names are not worth cleaning up. */
  readonly isCopy?: boolean;
  /** See `Stagings`. */
  readonly abandonedUpTo?: () => number;
  /** Returns what commits. It calls `committed` after each transaction. */
  readonly commits: (
    ticks: Ticks,
    committed: (transaction: Transaction) => void,
  ) => { readonly committer: Committer; readonly reserve: Reserve };
}

/** Blocks removed at the same time. Few, because removals delay readers of the disk. */
const REMOVALS_AT_ONCE = 2;

/** Returns the components of a storage over an open database. */
export function assembled(base: Base): Parts {
  const { database, contents, blocks, directoryTag, cursorKey, clock, log, stagedRowsMax } = base;
  const names = new NameIndex(database);
  const purge = new Purge(database, contents);
  const removals = new TreeRemovals(database, contents, purge);
  const stagings = new Stagings(database, contents, base.abandonedUpTo);
  const tree = new Tree(database, contents, names, removals, base.mintId ?? randomId);
  const store = { tree, removals, stagings, contents, purge, directoryTag };
  const sessions = new Sessions(database, contents);
  const watchers = new Watchers();
  const ticks = new Ticks(database, clock, stagings.ranges);
  const background = new Background(log);
  const { committer, reserve } = base.commits(ticks, ({ changes, orphans }) => {
    watchers.notify(changes);
    if (orphans.length > 0) background.start('removing blocks', removeAll(blocks, orphans));
  });
  const retention = new Retention(database, reserve, purge);
  const housekeeping = new Housekeeping(
    {
      ...{ contents, sessions, removals, stagings, purge, retention, blocks },
      names: base.isCopy ? { dropUnused: () => Promise.resolve() } : names,
      ...{ reserve, background, clock, log },
    },
    base.mustSearchBlocks,
  );
  const cursors = new Cursors(cursorKey, directoryTag, base.lastCommit);
  return {
    database,
    blocks,
    store,
    committer,
    reserve,
    names,
    listings: new Listings(database, store, cursors, ticks, watchers, clock),
    relocations: new Relocations(store, committer, reserve, ticks, clock, stagedRowsMax),
    uploads: new Uploads(database, store, blocks, sessions, committer, clock),
    watchers,
    ticks,
    background,
    housekeeping,
    log,
  };
}

/** Removes blocks. Continues after a failure, and throws the first one at the end. */
async function removeAll(blocks: BlockStore, names: readonly string[]): Promise<void> {
  const left = names.values();
  const failures: unknown[] = [];
  const work = async () => {
    for (const name of left) await blocks.remove(name).catch((failure: unknown) => failures.push(failure));
  };
  await Promise.all(Array.from({ length: REMOVALS_AT_ONCE }, work));
  if (failures.length > 0) throw failures[0];
}

function randomId(): string {
  return `id:${randomBytes(16).toString('base64url')}`;
}
