import type { Remote } from '../api/remote.ts';
import type { Journal } from '../state/journal.ts';
import type { DriveState } from '../state/state.ts';
import type { Clock } from '../util/clock.ts';
import { endsBefore } from '../util/grace.ts';
import type { Log } from '../util/log.ts';
import { type Meter, silentMeter } from '../util/meter.ts';
import { keyOf, ROOT } from '../util/path.ts';
import { ChangeFeed } from './cache/change-feed.ts';
import { OwnFeedProgress, SharedFeedProgress } from './cache/feed-progress.ts';
import { MetadataCache } from './cache/metadata-cache.ts';
import { SharedChanges } from './cache/shared-changes.ts';
import { Freshness, TreeCache } from './cache/tree-cache.ts';
import { createChangeLog } from './change-log.ts';
import { Announcer, type Changes } from './changes.ts';
import type { BlockCache } from './content/block-cache.ts';
import { createContentReader } from './content/content-reader.ts';
import { FileIds } from './file-ids.ts';
import type { ChangeLog, Files, NameSearch, Thumbnails } from './files.ts';
import { Gateways } from './gateways.ts';
import type { History } from './history.ts';
import type { JournalLimits } from './journal/capacity.ts';
import { type JournalDepth, openWriteBack, type PendingWrites } from './journal/write-back.ts';
import { LocalFiles, type LocalFilesPolicy } from './local-files.ts';
import { ModifiedTimes } from './modified-times.ts';
import { createNameSearch } from './name-search.ts';
import { isDoubtful, isWaiting, isWithinWaiting } from './names.ts';
import { guardRemote, PathLocks } from './path-locks.ts';
import { Placeholders } from './placeholders.ts';
import { QuotaCache } from './quota-cache.ts';
import { type Spool, writeSpooled } from './spool/spool.ts';
import { StateCollector } from './state-collector.ts';
import { createThumbnails } from './thumbnails.ts';
import { FileHistory } from './tree/file-history.ts';
import { FolderRelocator } from './tree/folder-relocator.ts';
import { HiddenEntries } from './tree/hidden-entries.ts';
import { IntentLog } from './tree/intent-log.ts';
import { KeptState } from './tree/kept-state.ts';
import { LocalMover } from './tree/local-mover.ts';
import { Mover } from './tree/mover.ts';
import { OtherReplacements } from './tree/other-replacements.ts';
import { PlaceholderCommitter } from './tree/placeholder-committer.ts';
import { Recovery } from './tree/recovery.ts';
import { RelocationIntents } from './tree/relocation-intents.ts';
import { type DeletePolicy, Remover } from './tree/remover.ts';
import { Replacer } from './tree/replacer.ts';
import { createTree, Reader } from './tree/tree.ts';
import { Writer } from './tree/writer.ts';

export interface DriveOptions {
  readonly remote: Remote;
  readonly state: DriveState;
  /** Cache of file content; several drives may share it. */
  readonly cache: BlockCache;
  readonly clock: Clock;
  readonly log: Log;
  readonly meter?: Meter;
  readonly deletePolicy: DeletePolicy;
  /** Spools bodies while the service is slow. Without it clients wait. */
  readonly spool?: Spool;
  /** What is done with files of desktop systems (`.DS_Store`, `._*`); default: `keep`. */
  readonly localFilesPolicy?: LocalFilesPolicy;
  /** How long a placeholder waits for its body, in ms. */
  readonly placeholderMs?: number;
  /** The journal of write-back mode: a write is acknowledged once it is there, and sent to the service afterwards. */
  readonly journal?: Journal;
  readonly journalLimits?: Partial<JournalLimits>;
  /** How long cached answers are used while the change feed is down, in ms. */
  readonly staleMs?: number;
  /** Shortest time between two requests for changes, in ms. */
  readonly feedEveryMs?: number;
  /** Maximum size of the metadata cache, in bytes. */
  readonly metadataBytesMax?: number;
  /**
   * Whether requests wait until they see what other gateways have acknowledged (`strict`, the default), or may be late by a
   * moment (`feed`).
   */
  readonly coherence?: Coherence;
}

export type Coherence = 'strict' | 'feed';

export interface DriveStatus {
  /** Whether the service reports changes as they happen. */
  readonly isFeedAlive: boolean;
  readonly placeholders: number;
  readonly metadataBytes: number;
}

export interface OpenDrive extends Files, NameSearch, Thumbnails {
  readonly history: History;
  /** The state for the protocol layer. */
  readonly state: DriveState;
  readonly changes: Changes;
  readonly changeLog: ChangeLog;
  /**
   * Resolves when reads show whatever another gateway of the drive has acknowledged until now. `undefined`: there is no
   * other, or reads may be late.
   */
  readonly catchUp: (() => Promise<void>) | undefined;
  status(): DriveStatus;
  /** The pending writes one by one; `undefined` without a journal. */
  readonly pending: PendingWrites | undefined;
  /** Number and size of the pending writes. */
  depth(): JournalDepth;
  /**
   * Waits for running changes and commits placeholders and pending writes until `over` is aborted; what remains is
   * committed after the next start. Then stops the change feed.
   */
  close(over: AbortSignal): Promise<void>;
}

/**
 * How long a placeholder waits for its body, in ms. Finder and Explorer send the body within a second, slow machines
 * within a few.
 */
const PLACEHOLDER_MS = 5_000;

/** How long cached answers are used while the change feed is down, in ms: about as long as clients cache a listing. */
const STALE_MS = 10_000;

/**
 * Shortest time between two requests for changes, in ms. Changes by others must be visible within a second, and the
 * request takes its time too.
 */
const FEED_EVERY_MS = 600;

/** Size of the metadata cache, in bytes: about 100,000 entries. */
const METADATA_BYTES_MAX = 64 * 1024 * 1024;

/** How often the changes of other gateways are read, in ms, while no request reads them. */
const READ_OTHERS_EVERY_MS = 1_000;

/** The same if no request ever reads them. */
const READ_OTHERS_OFTEN_EVERY_MS = 250;

/** Opens one drive of the storage service. Starts calls to the service, but waits for none of them. */
export async function openDrive(options: DriveOptions): Promise<OpenDrive> {
  const { remote: unguarded, state, clock, log } = options;
  const { placeholderMs = PLACEHOLDER_MS } = options;
  const { availability } = unguarded;
  const locks = new PathLocks();
  const callLocks = new PathLocks((path) => treeCache.inFlight.away(keyOf(path)));
  const remote = guardRemote(unguarded, callLocks, (changes) => hiddenEntries.look(changes));
  const times = new ModifiedTimes(state.times);
  const localFiles = new LocalFiles(state.localFiles, clock, options.localFilesPolicy ?? 'keep');
  const changes = new Announcer();
  const gateways = new Gateways(state.gatewayLeases, clock);
  const quota = new QuotaCache(remote, clock, log);
  const collector = new StateCollector({ remote, state, clock, log });

  const freshness = new Freshness(clock, options.staleMs ?? STALE_MS);
  const treeCache = new TreeCache(clock, options.metadataBytesMax ?? METADATA_BYTES_MAX, freshness);
  const { changeStream: stream } = state;
  const isStrict = options.coherence !== 'feed';
  const everyMs = isStrict ? READ_OTHERS_EVERY_MS : READ_OTHERS_OFTEN_EVERY_MS;
  const shared = stream && new SharedChanges({ stream, freshness, clock, log, everyMs });
  const catchUp = shared && isStrict ? () => shared.catchUp() : undefined;
  const metadata = new MetadataCache({
    remote,
    availability,
    cache: treeCache,
    times,
    clock,
    isHidden: (name) => isWaiting(name) || localFiles.ownsName(name),
    // The next sweep finds what is missed here.
    onGone: (ids) => void collector.suspect(ids).catch(() => {}),
    meter: options.meter ?? silentMeter,
    changes,
    shared,
    afterAnswer: catchUp,
  });
  const progress =
    shared && stream
      ? new SharedFeedProgress(stream.feed, shared, clock)
      : new OwnFeedProgress(metadata, clock);
  const feedEveryMs = options.feedEveryMs ?? FEED_EVERY_MS;
  const feed = new ChangeFeed({ remote, progress, freshness, clock, log, everyMs: feedEveryMs });

  const ids = new FileIds(state.properties);
  const committer = new PlaceholderCommitter({ remote, state, ids, metadata, locks, log });
  const placeholders = new Placeholders({
    store: state.placeholders,
    gateways,
    clock,
    log,
    commit: (placeholder) => committer.commit(placeholder),
    ...(shared && { caughtUpTo: (number: number) => shared.caughtUpTo(number) }),
    announce: (path) => changes.entry(path, { isTree: false }),
  });
  const content = createContentReader({ remote, cache: options.cache, clock, log });
  const reader = new Reader({ metadata, localFiles, placeholders, content });
  const writer = new Writer({
    ...{ remote, ids, metadata, localFiles, placeholders, times, locks, reader, quota, clock },
    ...{ placeholderMs, catchUp },
  });
  const remover = new Remover({
    ...{ remote, state, metadata, localFiles, placeholders, times, locks, collector, quota, log },
    policy: options.deletePolicy,
  });
  const { replacements } = state;
  const others = new OtherReplacements({
    ...{ metadata, callLocks },
    catchUp: shared && (() => shared.catchUp()),
  });
  const recovery = new Recovery({
    ...{ remote: unguarded, replacements, metadata, locks, callLocks, gateways, others, shared, clock, log },
  });
  const replacer = new Replacer({
    ...{ remote: unguarded, replacements, callLocks, recovery, gateways, shared, clock, log },
  });
  const folderRelocator = new FolderRelocator({ others, recovery });
  const hiddenEntries = new HiddenEntries({ replacements, recovery, clock, log });
  const keptState = new KeptState({ state, times, metadata, reader });
  const intentLog = new IntentLog({ state, metadata, localFiles, keptState, locks, gateways, clock, log });
  const intents = new RelocationIntents({ localFiles, metadata, keptState, gateways });
  const { properties } = state;
  const localMover = new LocalMover({ properties, localFiles, locks, reader, writer, remover });
  const mover = new Mover({
    ...{ remote, metadata, placeholders, times, locks, reader, log },
    ...{ remover, replacer, folderRelocator, intentLog, intents, localMover },
  });
  const history = new FileHistory({
    ...{ remote, metadata, localFiles, placeholders, content, reader, times, locks, quota },
  });
  const operations = { reader, writer, remover, mover, history, recovery, intentLog };
  const tree = createTree({ ...operations, localFiles, placeholders, quota, remote });
  const nameSearch = createNameSearch({ remote, metadata, localFiles, times });
  const thumbnails = createThumbnails({ remote, files: tree, localFiles });

  for (const root of await times.applyTo([treeCache.root])) treeCache.adorn(root);
  await shared?.start(metadata, others);
  feed.start();
  collector.start();
  placeholders.start();
  await gateways.start(async () => {
    await recovery
      .takeOver()
      .catch((error) =>
        log.error('cannot read which moves and copies a kill interrupted', { reason: String(error) }),
      );
    await intentLog
      .takeOver()
      .catch((error) =>
        log.error('cannot read which moved or copied files still lack properties', { reason: String(error) }),
      );
    await placeholders.takeOver();
  });
  const writeBack =
    options.journal &&
    (await openWriteBack({
      base: tree,
      nameSearch,
      thumbnails,
      journal: options.journal,
      ...{ state, ids },
      clock,
      log,
      spool: options.spool,
      bodyWaitMs: placeholderMs,
      goesThrough: (path) =>
        path === ROOT || localFiles.owns(path) || isWithinWaiting(path) || isDoubtful(path),
      availability,
      locate: (folderId, signal) => remote.locate(folderId, signal),
      touch: (folder) => metadata.adorn({ ...folder, modifiedMs: clock.now() }),
      isDeletionPermanent: () => remover.isPermanent,
      forgetKept: (path, ids) => remover.forgetKept(path, ids),
      changes,
      ...(options.journalLimits && { limits: options.journalLimits }),
    }));
  const changeLog = createChangeLog({
    ...{ remote, feed, metadata, localFiles, placeholders },
    pendingBelow: (folder) => writeBack?.revisionsBelow(folder) ?? new Map(),
    secret: () => state.secret(),
  });
  return {
    ...(writeBack?.files ?? { ...tree, write: writeSpooled(tree.write, options.spool) }),
    ...(writeBack?.nameSearch ?? nameSearch),
    history: writeBack?.history ?? tree.history,
    ...(writeBack?.thumbnails ?? thumbnails),
    state: { ...ids.follow(state), locks: changes.locks(state.locks) },
    changes,
    changeLog,
    catchUp,
    pending: writeBack?.pending,
    depth: () => writeBack?.depth() ?? { files: 0, bytes: 0, lostFiles: 0 },
    status: () => ({
      isFeedAlive: freshness.isAlive,
      placeholders: placeholders.count,
      metadataBytes: treeCache.sizeBytes,
    }),
    async close(over) {
      await writeBack?.close(over);
      const finish = async () => {
        await tree.idle();
        await placeholders.close();
        await hiddenEntries.close();
        await recovery.close();
        await intentLog.close();
      };
      if (!(await endsBefore(over, finish())))
        log.warn('the grace period is over: calls to the storage service were cut off');
      await collector.close();
      await metadata.prefetch.close();
      await feed.close();
      await shared?.close();
      await gateways.close();
    },
  };
}
