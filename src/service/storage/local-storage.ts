import type { Log } from '../../util/log.ts';
import type { ByteRange } from '../../util/ranges.ts';
import type { SqliteDatabase } from '../../util/sqlite/sqlite.ts';
import type { Background } from './background.ts';
import { BlockBuffers } from './blocks/block-buffers.ts';
import type { BlockStore } from './blocks/block-store.ts';
import { readContent } from './blocks/content-reader.ts';
import type { Reserve } from './blocks/reserve.ts';
import { type Committer, eachInSavepoint, inSteps } from './committer.ts';
import { asRefusal, DamagedBlockError, notFound } from './errors.ts';
import { isDeletion } from './feed/feed.ts';
import { numberOf, type Ticks } from './feed/ticks.ts';
import type { Watchers } from './feed/watchers.ts';
import type { Housekeeping, RoundEnd } from './housekeeping/housekeeping.ts';
import type { Uploads } from './sessions/uploads.ts';
import {
  type CursorOwner,
  type NameFilter,
  type NameLookup,
  type NameScope,
  type Storage,
  StorageError,
  type Stored,
  type StoredDeletion,
  type StoredFile,
} from './storage.ts';
import { removeEntry, removeEntryForever } from './tree/entry-removal.ts';
import { makeFolder, type Store } from './tree/entry-writes.ts';
import { restoreRevision, revisionsOf } from './tree/history.ts';
import type { Listings } from './tree/listing.ts';
import { allIn, itemAt, itemsAt, itemWithFolders } from './tree/lookups.ts';
import type { NameIndex } from './tree/name-index.ts';
import type { Relocations } from './tree/relocations.ts';
import { type Below, below, storedDeletion, storedFile, storedFolder, storedOf } from './tree/tree-rows.ts';

/** The components of an open storage. */
export interface Parts {
  readonly database: SqliteDatabase;
  readonly blocks: BlockStore;
  readonly store: Store;
  readonly committer: Committer;
  readonly reserve: Reserve;
  readonly names: NameIndex;
  readonly listings: Listings;
  readonly uploads: Uploads;
  readonly relocations: Relocations;
  readonly log: Log;
  readonly watchers: Watchers;
  readonly ticks: Ticks;
  /** Tasks that no caller waits for; `close` waits for all of them. */
  readonly background: Background;
  readonly housekeeping: Housekeeping;
}

/** Returns the `Storage` over an open data directory. */
export function localStorage(parts: Parts): Storage {
  const blockBuffers = new BlockBuffers();
  const { store, committer, reserve, listings, uploads } = parts;
  const { directoryTag } = store;
  const namespaces = namespacesOf(parts.database);
  const numberFor = namespaces.number;
  const at = (owner: CursorOwner) => numberFor(owner.namespace);

  return {
    createNamespace: async (namespace, limitBytes) => namespaces.create(namespace, limitBytes),
    usage: async (namespace) => namespaces.usage(namespace),
    stat: async (namespace, address, includeDeleted) =>
      itemAt(store, numberFor(namespace), address, includeDeleted),
    statAll: async (namespace, addresses) => itemsAt(store, numberFor(namespace), addresses),
    statWithFolders: async (namespace, address) => itemWithFolders(store, numberFor(namespace), address),
    known: async (namespace, ids) => {
      const ns = numberFor(namespace);
      return new Set(ids.filter((id) => store.tree.isKnown(ns, id)));
    },
    revisions: async (namespace, address, options) =>
      revisionsOf(store, numberFor(namespace), address, options),

    countNamed: async (namespace, deleted, word, max) =>
      parts.names.countNamed({ ns: numberFor(namespace), deleted }, word, max),
    countBelow: async (namespace, { path, deleted }, max) =>
      parts.names.countBelow({ ...rangeOf(store, numberFor(namespace), path), deleted }, max),
    findNames: (namespace, scope, lookup, filter) =>
      findNames(parts, () => numberFor(namespace), scope, lookup, filter),

    list: async (owner, scope, limit) => listings.first(at(owner), owner, scope, limit),
    listAll: async (namespace, address, max) => allIn(store, numberFor(namespace), address, max),
    latestCursor: async (owner, scope, limit) => listings.latest(at(owner), owner, scope, limit),
    listContinue: async (owner, cursor) => listings.next(owner, cursor),
    awaitChange: (cursor, timeoutMs, signal) => listings.awaitChange(cursor, timeoutMs, signal),

    upload: async (namespace, commit, body, options) =>
      await uploads.upload(numberFor(namespace), commit, body, options),
    startSession: async (namespace, kind, body, close) =>
      await uploads.start(numberFor(namespace), kind, body, close),
    appendSession: async (namespace, point, body, close) =>
      await uploads.append(numberFor(namespace), point, body, close),
    appendSessions: async (namespace, pieces, body) =>
      await uploads.appendBatch(numberFor(namespace), pieces, body),
    finishSession: async (namespace, point, commit, body) =>
      await uploads.finish(numberFor(namespace), point, commit, body),
    finishSessions: async (namespace, entries) => await uploads.finishBatch(numberFor(namespace), entries),

    read: (namespace, file, range, options) =>
      read(parts, () => numberFor(namespace), {
        file,
        range,
        buffers: options?.lent ? blockBuffers : undefined,
      }),

    createFolder: async (namespace, path, autorename) =>
      storedFolder(
        await committer.run((transaction) =>
          makeFolder(store, transaction, numberFor(namespace), path, autorename),
        ),
      ),
    remove: async (namespace, address, parentRev) => {
      const removed = await reserve.commit((transaction) =>
        removeEntry(store, transaction, numberFor(namespace), address, parentRev),
      );
      clearAway(parts);
      return storedOf(removed, directoryTag);
    },
    removeForever: async (namespace, address, parentRev) => {
      await reserve.commit((transaction) =>
        removeEntryForever(store, transaction, numberFor(namespace), address, parentRev),
      );
      clearAway(parts);
    },
    ...batches(parts, numberFor),
    restore: async (namespace, path, rev) =>
      storedFile(
        await committer.run((transaction) =>
          restoreRevision(store, transaction, numberFor(namespace), path, rev),
        ),
        directoryTag,
      ),
    async tidy() {
      await tidy(parts);
    },
    tidyShared: async () => {},
    close: () => close(parts),
  };
}

/** Runs one round of housekeeping, or waits for the one under way. Tells how it has ended. */
export function tidy({ housekeeping, background }: Parts): Promise<RoundEnd> {
  const round = housekeeping.tidy();
  // `close` waits for this round too.
  background.start('housekeeping', round);
  return round;
}

/** See `Storage.findNames`. */
async function* findNames(
  { store, names }: Parts,
  ns: () => number,
  { path, deleted }: NameScope,
  lookup: NameLookup,
  filter: NameFilter,
): AsyncGenerator<readonly (Stored | StoredDeletion)[], void, undefined> {
  const { removals, directoryTag } = store;
  const scope = { ...rangeOf(store, ns(), path), deleted };
  for (const found of names.find(scope, lookup, filter))
    yield found
      .filter((one) => (isDeletion(one) ? !removals.isDeletionForgotten(one) : !removals.ofEntry(one)))
      .map((one) => (isDeletion(one) ? storedDeletion(one) : storedOf(one, directoryTag)));
}

/** Returns the range of all paths below a folder. Throws `lookup/…` unless `path` is a folder. */
function rangeOf({ tree }: Store, ns: number, path: string): Below {
  const folder = tree.locate(ns, path, 'lookup');
  const row = folder && tree.find(ns, folder);
  if (folder && !row) throw notFound();
  if (row && row.revision !== null) throw new StorageError({ kind: 'lookup', tag: 'not_folder' });
  return below(ns, folder?.key ?? '');
}

/**
 * Returns the batch operations. Each entry runs in its own savepoint, several in one transaction; `relocateTogether`
 * runs all of them in one change, or none.
 */
function batches(
  parts: Parts,
  numberFor: (namespace: string) => number,
): Pick<Storage, 'createFolders' | 'removeAll' | 'relocate' | 'relocateAll' | 'relocateTogether'> {
  const { database, store, committer, reserve, relocations } = parts;
  const { directoryTag } = store;
  const together: Storage['relocateTogether'] = async (namespace, entries, options) => {
    try {
      const moved = await relocations.together(numberFor(namespace), entries, options);
      return moved.map((row) => storedOf(row, directoryTag));
    } finally {
      clearAway(parts);
    }
  };
  return {
    createFolders: async (namespace, paths, autorename) => {
      const ns = numberFor(namespace);
      return await inSteps(paths, committer.entriesMax, (next) =>
        committer.run((transaction) =>
          eachInSavepoint(database, transaction, next, (path) =>
            storedFolder(makeFolder(store, transaction, ns, path, autorename)),
          ),
        ),
      );
    },
    removeAll: async (namespace, entries) => {
      const ns = numberFor(namespace);
      const removed = await inSteps(entries, committer.entriesMax, (next) =>
        reserve.commit((transaction) =>
          eachInSavepoint(database, transaction, next, ({ address, parentRev }) =>
            storedOf(removeEntry(store, transaction, ns, address, parentRev), directoryTag),
          ),
        ),
      );
      clearAway(parts);
      return removed;
    },
    relocate: async (namespace, from, to, options) => {
      const [moved] = await together(namespace, [{ from, to }], options);
      if (!moved) throw new Error('a move has no outcome');
      return moved;
    },
    relocateAll: async (namespace, entries, options) => {
      const ns = numberFor(namespace);
      try {
        return await inSteps(entries, committer.entriesMax, async (next) => {
          const done = await committer.run((transaction) =>
            eachInSavepoint(database, transaction, next, (pair) => {
              const row = relocations.smallOne(transaction, ns, pair, options);
              return row && storedOf(row, directoryTag);
            }),
          );
          if (done.length > 0) return done;
          const moved = await relocations.large(ns, next.slice(0, 1), options).catch(refusalOf);
          return moved instanceof StorageError ? [moved] : moved.map((row) => storedOf(row, directoryTag));
        });
      } finally {
        clearAway(parts);
      }
    },
    relocateTogether: together,
  };
}

/** Returns `failure` if it is a refusal, otherwise throws it. */
function refusalOf(failure: unknown): StorageError {
  if (failure instanceof StorageError) return failure;
  throw failure;
}

/** Starts clearing away removed and moved rows in the background, if there are any. */
function clearAway(parts: Parts): void {
  if (parts.reserve.isClosed) return;
  const { stagings, removals, purge } = parts.store;
  if (!stagings.isEmpty || !removals.isEmpty || !purge.isEmpty)
    parts.background.start('removing deleted entries', tidyUp(parts));
}

/** Clears away removed rows, frees their space, then refills the reserve for the next removal. */
async function tidyUp({ store, reserve }: Parts): Promise<void> {
  await store.stagings.work(reserve);
  await store.removals.work(reserve);
  await store.purge.work(reserve);
  if (!reserve.isClosed) await reserve.fill();
}

interface Reading {
  readonly file: StoredFile;
  readonly range: ByteRange | undefined;
  /** Buffers for chunks that are lent. */
  readonly buffers: BlockBuffers | undefined;
}

/** See `Storage.read`. Looks up nothing before the first chunk is requested. */
async function* read(
  { blocks, store, reserve, background, log }: Parts,
  ns: () => number,
  { file, range, buffers }: Reading,
): AsyncGenerator<Uint8Array, void, undefined> {
  const { tree, contents, directoryTag } = store;
  const number = numberOf(file.rev, directoryTag);
  const revision = number === undefined ? undefined : tree.revision(ns(), number);
  if (!revision) throw notFound();
  const { content, sizeBytes } = revision;
  const start = range?.start ?? 0;
  const end = Math.min(range?.end ?? sizeBytes, sizeBytes);
  if (start >= end) return;
  contents.startReading(content);
  try {
    yield* readContent({ blocks, contents, buffers }, content, { start, end });
  } catch (failure) {
    if (failure instanceof DamagedBlockError)
      log.error('stored bytes are damaged', { hash: failure.hash, reason: failure.message });
    throw failure;
  } finally {
    // No reader waits for this or sees it fail; then the next round of housekeeping collects the content. A reader that
    // is still open when the storage closes stays counted, so that the next start collects it.
    if (!reserve.isClosed && contents.stopReading(content))
      background.start(
        'removing content after its last reader',
        reserve.commit((transaction) => void contents.collect(transaction, content)),
      );
  }
}

/** Returns the operations on namespaces by their public names. */
function namespacesOf(database: SqliteDatabase): {
  readonly usage: (namespace: string) => Awaited<ReturnType<Storage['usage']>>;
  readonly create: (namespace: string, limitBytes: number) => void;
  readonly number: (namespace: string) => number;
} {
  const find = database.prepare<[string], { id: number; usedBytes: number; limitBytes: number }>(
    // Space charged for a large copy shows only after the copy is published.
    `SELECT id, limit_bytes AS limitBytes,
       used_bytes - (SELECT coalesce(sum(charged_bytes), 0) FROM staging WHERE ns = namespace.id) AS usedBytes
     FROM namespace WHERE name = ?`,
  );
  const create = database.prepare<[string, number]>(
    `INSERT INTO namespace (name, limit_bytes) VALUES (?, ?)
     ON CONFLICT (name) DO UPDATE SET limit_bytes = excluded.limit_bytes
     WHERE limit_bytes <> excluded.limit_bytes`,
  );
  const found = (namespace: string) => {
    const row = find.get(namespace);
    if (!row) throw new Error(`there is no namespace ${JSON.stringify(namespace)}: create it first`);
    return row;
  };
  return {
    create: (namespace, limitBytes) => {
      if (find.get(namespace)?.limitBytes !== limitBytes) create.run(namespace, limitBytes);
    },
    number: (namespace) => found(namespace).id,
    usage: (namespace) => {
      const { usedBytes, limitBytes } = found(namespace);
      return { usedBytes, limitBytes };
    },
  };
}

/** Ends waits, finishes accepted work, and releases the data directory. */
async function close(parts: Parts): Promise<void> {
  const { database, blocks, store, committer, background, housekeeping, watchers, log } = parts;
  watchers.endAll();
  await committer.close();
  await background.ended();
  if (!database.open) return;
  // Interrupted work leaves unreferenced rows or blocks, which the next start has to look for.
  if (!blocks.hasPins && !store.contents.hasReaders && !housekeeping.isUnfinished)
    markClosed(database, true, log);
  database.close();
  await blocks.close();
}

/**
 * Records whether the storage was closed properly; the next start then skips the search for what a crash leaves behind.
 */
export function markClosed(database: SqliteDatabase, closed: boolean, log: Log): void {
  try {
    database.prepare(`UPDATE setting SET value = ? WHERE name = 'closed'`).run(closed ? 1 : 0);
  } catch (failure) {
    // A full disk must not prevent opening or closing; a wrong record costs an unnecessary search or a leftover file.
    if (!(asRefusal(failure) instanceof StorageError)) throw failure;
    log.warn('the disk is full', { reason: String(failure) });
  }
}
