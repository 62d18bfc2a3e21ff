import type { Remote } from '../api/remote.ts';
import type { Journal } from '../state/journal.ts';
import type { DriveState } from '../state/state.ts';
import type { Clock } from '../util/clock.ts';
import { endsBefore } from '../util/grace.ts';
import type { Log } from '../util/log.ts';
import { type Meter, silentMeter } from '../util/meter.ts';
import { ROOT } from '../util/path.ts';
import { ChangeFeed } from './cache/change-feed.ts';
import { MetadataCache } from './cache/metadata-cache.ts';
import { Outage } from './cache/outage.ts';
import { TreeCache } from './cache/tree-cache.ts';
import type { BlockCache } from './content/block-cache.ts';
import { createContentReader } from './content/content-reader.ts';
import type { Files } from './files.ts';
import { Gaps } from './guarded-remote.ts';
import type { JournalLimits } from './journal/capacity.ts';
import { type JournalDepth, openWriteBack, type PendingWrites } from './journal/write-back.ts';
import { LocalFiles } from './local-files.ts';
import { isDoubtful, isLitter, isWaiting, isWithinWaiting } from './names.ts';
import { PathLocks } from './path-locks.ts';
import { Placeholders } from './placeholders.ts';
import { QuotaCache } from './quota.ts';
import { ModifiedTimes } from './set-times.ts';
import { type Spool, writeSpooled } from './spool/spool.ts';
import { StateCollector } from './state-collector.ts';
import { IntentLog } from './tree/intent-log.ts';
import { KeptState } from './tree/kept-state.ts';
import { Mover } from './tree/mover.ts';
import type { TreeParts } from './tree/parts.ts';
import { Reader } from './tree/reader.ts';
import { Recovery } from './tree/recovery.ts';
import { type DeletePolicy, Remover } from './tree/remover.ts';
import { Replacer } from './tree/replacing.ts';
import { createTree } from './tree/tree.ts';
import { Writer } from './tree/writer.ts';

export interface DriveOptions {
  readonly remote: Remote;
  readonly state: DriveState;
  /** Of content; it may be shared with other drives. */
  readonly cache: BlockCache;
  readonly clock: Clock;
  readonly log: Log;
  readonly meter?: Meter;
  readonly deletePolicy: DeletePolicy;
  /** Where bodies wait that the service does not take yet; without it, their senders do. */
  readonly spool?: Spool;
  /** Whether the litter of desktop systems is kept off the service; on when absent. */
  readonly setAside?: boolean;
  /** How long an empty file waits for its body, ms. */
  readonly placeholderMs?: number;
  /** With it, a write is acknowledged when it is there, and sent afterwards. */
  readonly journal?: Journal;
  readonly journalLimits?: Partial<JournalLimits>;
  /** How long what is known may be believed while the change feed is down, ms. */
  readonly staleMs?: number;
  /** Changes at the service that follow each other faster are asked for together, ms. */
  readonly feedEveryMs?: number;
  /** What may be remembered of folders and entries together, bytes. */
  readonly metadataBytesMax?: number;
}

export interface DriveStatus {
  /** Whether changes made elsewhere are seen as they happen. */
  readonly isFeedAlive: boolean;
  readonly placeholders: number;
  readonly metadataBytes: number;
}

export interface OpenDrive extends Files {
  /** As the protocol is to use it. */
  readonly state: DriveState;
  status(): DriveStatus;
  /** The single writes that wait in the journal; `undefined` without one. */
  readonly pending: PendingWrites | undefined;
  /** What waits in the journal; nothing ever does without one. */
  depth(): JournalDepth;
  /**
   * Waits for changes under way, and commits what is held back or pending, until `over`: what is kept on this machine goes
   * on at the next start. Stops watching the service.
   */
  close(over: AbortSignal): Promise<void>;
}

/** Finder and Explorer send the body within a second of the empty file; slow ones within a few. */
const PLACEHOLDER_MS = 5_000;

/** As long as clients keep a listing themselves. */
const STALE_MS = 10_000;

/** What others change is to be seen within a second, and asking takes a moment too. */
const FEED_EVERY_MS = 600;

/** About 100,000 entries. */
const METADATA_BYTES_MAX = 64 * 1024 * 1024;

/** One drive of the storage service as a tree of files. Calls the service, but waits for no answer. */
export async function openDrive(options: DriveOptions): Promise<OpenDrive> {
  const { remote: bare, state, cache, clock, log } = options;
  const gaps = new Gaps();
  const remote = gaps.guard(bare);
  const { availability } = remote;
  const outage = new Outage(availability, clock);
  const isSettingAside = options.setAside ?? true;
  const times = new ModifiedTimes(state.times);
  const bytesMax = options.metadataBytesMax ?? METADATA_BYTES_MAX;
  const known = new TreeCache(clock, bytesMax, (asked): boolean => feed.isFresh(asked));
  const isHidden = (name: string) => isWaiting(name) || (isSettingAside && isLitter(name));
  const collector = new StateCollector({ remote, state, clock, log });
  const onGone = (ids: readonly string[]) => {
    // What is missed here the next sweep finds.
    collector.suspect(ids).catch(() => {});
  };
  const metadata = new MetadataCache({
    remote,
    onGone,
    outage,
    known,
    times,
    clock,
    isHidden,
    meter: options.meter ?? silentMeter,
  });
  const feed = new ChangeFeed({
    remote,
    listener: metadata,
    clock,
    log,
    staleMs: options.staleMs ?? STALE_MS,
    everyMs: options.feedEveryMs ?? FEED_EVERY_MS,
  });
  const placeholders = new Placeholders({
    store: state.placeholders,
    clock,
    log,
    commit: (placeholder) => writing.commitPlaceholder(placeholder),
  });
  const parts: TreeParts = {
    remote,
    locks: new PathLocks(),
    state,
    metadata,
    localFiles: new LocalFiles(state.localFiles, clock, isSettingAside),
    placeholders,
    times,
    collector,
    reader: createContentReader({ remote, cache, clock, log }),
    space: new QuotaCache(remote, clock, log),
    clock,
    log,
  };
  const reading = new Reader(parts);
  const writing: Writer = new Writer(parts, reading, options.placeholderMs ?? PLACEHOLDER_MS);
  const removal = new Remover(parts, options.deletePolicy);
  const repairs = new Recovery({ ...parts, remote: bare, gaps });
  const stepAside = new Replacer({ remote: bare, state, gaps, log }, repairs);
  const keptState = new KeptState(parts, reading);
  const intentLog = new IntentLog(parts, keptState);
  const relocating = new Mover(parts, reading, writing, removal, stepAside, keptState, intentLog);
  const tree = createTree({ parts, reading, writing, removal, relocating, repairs, intentLog });

  for (const root of await times.on([known.root])) known.adorn(root);
  feed.start();
  collector.start();
  await repairs
    .open()
    .catch((error) => log.error('what a kill left half done is not known', { reason: String(error) }));
  await intentLog
    .open()
    .catch((error) => log.error('what a kill left of copies is not known', { reason: String(error) }));
  await placeholders.start();
  const placeholderMs = options.placeholderMs ?? PLACEHOLDER_MS;
  const writeBack =
    options.journal &&
    (await openWriteBack({
      base: tree,
      journal: options.journal,
      state,
      clock,
      log,
      bodyWaitMs: placeholderMs,
      goesThrough: (path) =>
        path === ROOT || parts.localFiles.owns(path) || isWithinWaiting(path) || isDoubtful(path),
      availability,
      locate: (folderId, signal) => remote.locate(folderId, signal),
      touch: (folder) => metadata.adorn({ ...folder, modifiedMs: clock.now() }),
      isDeletionPermanent: () => removal.isPermanent,
      forgetKept: (path, ids) => removal.forgetKept(path, ids),
      ...(options.journalLimits && { limits: options.journalLimits }),
    }));
  const files = writeBack?.files ?? tree;
  return {
    ...files,
    write: options.spool ? writeSpooled(files, options.spool) : files.write,
    state: writeBack?.state ?? state,
    pending: writeBack?.pending,
    depth: () => writeBack?.depth() ?? { files: 0, bytes: 0, lostFiles: 0 },
    status: () => ({
      isFeedAlive: feed.isAlive,
      placeholders: placeholders.count,
      metadataBytes: known.sizeBytes,
    }),
    async close(over) {
      await writeBack?.close(over);
      const finish = async () => {
        await tree.idle();
        await placeholders.close();
        await repairs.close();
        await intentLog.close();
      };
      if (!(await endsBefore(over, finish())))
        log.warn('calls of the storage service were cut off at the end of the grace time');
      await collector.close();
      await metadata.subtrees.close();
      await feed.close();
    },
  };
}
