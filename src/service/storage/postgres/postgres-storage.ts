import { randomBytes, randomUUID } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import PQueue from 'p-queue';
import type { Pool } from 'pg';
import type { Clock } from '../../../util/clock.ts';
import type { Log } from '../../../util/log.ts';
import { makeFolder } from '../../../util/make-folder.ts';
import { migrate } from '../../postgres/migrate.ts';
import { findRow } from '../../postgres/queries.ts';
import type { BlockPlace } from '../blocks/block-place.ts';
import type { BlockPlaces } from '../blocks/block-store.ts';
import type { BucketAccess } from '../blocks/bucket/bucket-address.ts';
import { localDisk } from '../blocks/disk.ts';
import { IncomingFiles } from '../blocks/incoming-files.ts';
import { Cursors, refused } from '../feed/cursors.ts';
import type { Storage } from '../storage.ts';
import { openDatabase } from '../storage-database.ts';
import { expectFinished } from '../unfinished-copy.ts';
import type { ArrivingFolder } from './arriving-folder.ts';
import { collectBlocks, forgetOld, runDespiteFailures, takeLease } from './collector.ts';
import { JointCommits } from './joint-commits.ts';
import { LostNamespaceError } from './lost-namespace.ts';
import { MIGRATIONS } from './migrations.ts';
import { versionsIn } from './namespace-lookups.ts';
import { noteTidied, unfinished } from './namespace-rows.ts';
import { type CopyFolder, Namespaces } from './namespaces.ts';
import { followOthers, tellOthers } from './notifications.ts';
import type { OpenNamespace } from './open-namespace.ts';
import { keptMsIn, noteKept, settingOf } from './settings.ts';
import { sharedFolder } from './shared-folder.ts';

export interface PostgresStorageOptions {
  /** Connections to the database with the metadata, which the storage does not close. */
  readonly pool: Pool;
  /** Directory of this process alone, for copies of metadata and arriving blocks. Nothing in it is needed later. */
  readonly scratchDirectory: string;
  /** Where the blocks are: a bucket, or a folder that all processes share. */
  readonly blocks: BucketAccess | { readonly folder: string };
  readonly clock: Clock;
  readonly log: Log;
  readonly mintId?: () => string;
  /**
   * How long a block is kept after nothing refers to it, in ms: as long as older backups of the database are of use. The
   * longest time that any process has been given counts.
   */
  readonly keepDeletedBlocksMs?: number;
  /** How long an upload may take, in ms; a day by default. Its blocks may be gone when it takes longer, and then it fails. */
  readonly uploadMsMax?: number;
  /** See `StorageOptions`. */
  readonly commitWaitMs?: number;
  readonly removedRowsMax?: number;
  readonly stagedRowsMax?: number;
  /** Size of the copies that are kept although nobody uses them, in bytes; 4 GiB by default. */
  readonly unusedBytesMax?: number;
}

/** The name under which commits are told. */
const CHANNEL = 'davgate_commits';

/** How long the removal of blocks may take before another process begins it too, in ms. */
const COLLECTOR_LEASE_MS = 50 * 60 * 1000;

/** Copies that are loaded at once. */
const LOADS_AT_ONCE = 2;

/**
 * Opens a storage whose metadata is in PostgreSQL, and its blocks in a bucket or a shared folder. Any number of processes
 * may open the same one. Throws `PostgresError`, `BucketError`, and `DataDirectoryError`.
 */
export async function openPostgresStorage(options: PostgresStorageOptions): Promise<Storage> {
  const { pool, clock, log, mintId } = options;
  await migrate(pool, 'storage', MIGRATIONS);
  const tag = (await settingOf(pool, 'tag', () => randomBytes(4))).toString('hex');
  const cursorKey = await settingOf(pool, 'cursor-key', () => randomBytes(32));
  if (options.keepDeletedBlocksMs !== undefined) await noteKept(pool, options.keepDeletedBlocksMs, log);
  const scratch = await openScratch(options.scratchDirectory);
  const { places, blocks, arriving } = await placesOf(options, tag).catch((failure: unknown) => {
    scratch.close();
    throw failure;
  });
  const namespaces = new Namespaces(
    scratch.copies,
    {
      ...{ pool, places, tag, cursorKey, mintId, clock, log },
      ...{ commitWaitMs: options.commitWaitMs, removedRowsMax: options.removedRowsMax },
      stagedRowsMax: options.stagedRowsMax,
      versions: versionsIn(pool),
      joint: new JointCommits(pool, clock),
      loads: new PQueue({ concurrency: LOADS_AT_ONCE }),
      told: tellOthers(pool, CHANNEL, log),
    },
    options.unusedBytesMax,
  );
  const holder = randomUUID();
  const closing = new AbortController();
  const following = followOthers(namespaces, { pool, channel: CHANNEL, clock, log }, closing.signal);
  const noting = arriving?.noteUses(clock, log, closing.signal);
  const cursors = new Cursors(cursorKey, tag);

  function at<Rest extends readonly unknown[], T>(
    call: (namespace: OpenNamespace, ...rest: [string, ...Rest]) => Promise<T>,
  ): (namespace: string, ...rest: Rest) => Promise<T> {
    return (namespace, ...rest) => namespaces.with(namespace, (open) => call(open, namespace, ...rest));
  }

  /** Tidies the namespaces in use here, and those with work that a process has left. */
  async function tidy(): Promise<void> {
    const held = new Set(namespaces.inUse);
    for (const ns of new Set([...held, ...(await unfinished(pool, clock.now()))])) {
      if (closing.signal.aborted) return;
      try {
        await tidyOne(ns, held.has(ns));
      } catch (error) {
        if (closing.signal.aborted) return;
        // One that cannot be tidied does not keep the others from it.
        log.warn('housekeeping of a namespace failed', { namespace: ns, error: String(error) });
      }
    }
  }

  /** Removes blocks and old rows, in one process for all. */
  async function tidyShared(): Promise<void> {
    if (closing.signal.aborted || !(await takeLease(pool, 'collector', holder, COLLECTOR_LEASE_MS))) return;
    // Another process may have been told to keep them longer since.
    const keptMs = await keptMsIn(pool, options.keepDeletedBlocksMs, options.uploadMsMax);
    await runDespiteFailures([
      async () => await arriving?.removeUnused(clock.now() - keptMs),
      () => forgetOld(pool, keptMs, closing.signal),
      async () => {
        const { removed, failure } = await collectBlocks({ on: pool, blocks, keptMs }, closing.signal);
        if (removed > 0) log.info('removed blocks that nothing refers to', { removedBlocks: removed });
        if (failure !== undefined) throw failure;
      },
    ]);
  }

  /** A copy that was loaded for this alone is tidied to the end of its history: the next one would begin again. */
  async function tidyOne(ns: number, isHeld: boolean): Promise<void> {
    await namespaces.at(ns, async (namespace) => {
      let end = await namespace.tidy();
      while (end === 'limited' && !isHeld) end = await namespace.tidy();
      if (end === 'complete') await noteTidied(pool, ns, clock.now());
    });
  }

  return {
    createNamespace: (namespace, limitBytes) => namespaces.create(namespace, limitBytes),
    stat: at(({ storage }, ...call) => storage.stat(...call)),
    statAll: at(({ storage }, ...call) => storage.statAll(...call)),
    statWithFolders: at(({ storage }, ...call) => storage.statWithFolders(...call)),
    known: (namespace, ids) => namespaces.withHeld(namespace, ({ storage }) => storage.known(namespace, ids)),
    countNamed: at(({ storage }, ...call) => storage.countNamed(...call)),
    countBelow: at(({ storage }, ...call) => storage.countBelow(...call)),
    findNames: (namespace, ...rest) =>
      namespaces.iterate(namespace, ({ storage }) => storage.findNames(namespace, ...rest)),
    list: (owner, ...rest) => namespaces.with(owner.namespace, ({ storage }) => storage.list(owner, ...rest)),
    listAll: at(({ storage }, ...call) => storage.listAll(...call)),
    latestCursor: (owner, ...rest) =>
      namespaces.with(owner.namespace, ({ storage }) => storage.latestCursor(owner, ...rest)),
    async listContinue(owner, cursor) {
      const { state } = cursors.decode(cursor);
      return await namespaces.with(owner.namespace, async (namespace) => {
        // A cursor of another namespace is refused below.
        if (state.ns === namespace.ns) await namespace.expectSeen(state);
        return await namespace.storage.listContinue(owner, cursor);
      });
    },
    async awaitChange(cursor, timeoutMs, signal) {
      const { state } = cursors.decode(cursor);
      try {
        return await namespaces.watching(state.ns, async (namespace) => {
          await namespace.expectSeen(state);
          return await namespace.storage.awaitChange(cursor, timeoutMs, signal);
        });
      } catch (failure) {
        throw failure instanceof LostNamespaceError ? refused('reset') : failure;
      }
    },
    upload: at(({ storage }, ...call) => storage.upload(...call)),
    startSession: at(({ storage }, ...call) => storage.startSession(...call)),
    appendSession: at(({ storage }, ...call) => storage.appendSession(...call)),
    appendSessions: at(({ storage }, ...call) => storage.appendSessions(...call)),
    finishSession: at(({ storage }, ...call) => storage.finishSession(...call)),
    finishSessions: at(({ storage }, ...call) => storage.finishSessions(...call)),
    read: (namespace, ...rest) =>
      namespaces.iterate(namespace, ({ storage }) => storage.read(namespace, ...rest)),
    createFolder: at(({ storage }, ...call) => storage.createFolder(...call)),
    remove: at(({ storage }, ...call) => storage.remove(...call)),
    removeForever: at(({ storage }, ...call) => storage.removeForever(...call)),
    relocate: at(({ storage }, ...call) => storage.relocate(...call)),
    createFolders: at(({ storage }, ...call) => storage.createFolders(...call)),
    removeAll: at(({ storage }, ...call) => storage.removeAll(...call)),
    relocateAll: at(({ storage }, ...call) => storage.relocateAll(...call)),
    relocateTogether: at(({ storage }, ...call) => storage.relocateTogether(...call)),
    revisions: at(({ storage }, ...call) => storage.revisions(...call)),
    restore: at(({ storage }, ...call) => storage.restore(...call)),
    usage: at(({ storage }, ...call) => storage.usage(...call)),
    tidy,
    tidyShared,
    async close() {
      closing.abort();
      await Promise.all([following, noting]);
      await namespaces.close();
      await blocks.close();
      scratch.close();
    },
  };
}

/** A process's own folder for what is not needed after a restart. */
interface Scratch {
  readonly copies: CopyFolder;
  close(): void;
}

/** Empties the folder. Throws `DataDirectoryError` if another process has it. */
async function openScratch(directory: string): Promise<Scratch> {
  expectFinished(directory);
  makeFolder(directory);
  const lock = await openDatabase(join(directory, 'in-use.sqlite'));
  const path = join(directory, 'copies');
  try {
    await rm(path, { recursive: true, force: true });
    makeFolder(path);
    return { copies: { path, empty: lock.serialize() }, close: () => lock.close() };
  } catch (failure) {
    lock.close();
    throw failure;
  }
}

/** Where the blocks are, and how the namespaces see it. */
interface Places {
  readonly places: BlockPlaces;
  readonly blocks: BlockPlace;
  /** In a folder that others share. */
  readonly arriving?: ArrivingFolder;
}

/** Opens the place of the blocks. */
export async function placesOf(
  {
    pool,
    scratchDirectory,
    blocks: asked,
  }: Pick<PostgresStorageOptions, 'pool' | 'scratchDirectory' | 'blocks'>,
  tag: string,
): Promise<Places> {
  const hasBlocks = (await findRow(pool, 'SELECT 1 AS one FROM davgate.block_name LIMIT 1')) !== undefined;
  if ('folder' in asked) {
    const { blocks, arriving } = await sharedFolder(asked.folder, tag, hasBlocks);
    return { blocks, places: { incoming: arriving.incoming, outer: withoutRemovals(blocks) }, arriving };
  }
  const incoming = new IncomingFiles(scratchDirectory, localDisk);
  await incoming.prepare();
  const { blockBucket } = await import('../blocks/bucket/block-bucket.ts');
  const blocks = blockBucket({ access: asked, directoryTag: tag, hasBlocks, incoming });
  await blocks.prepare();
  return { blocks, places: { incoming, outer: withoutRemovals(blocks) } };
}

/** Returns how a namespace sees the blocks: nothing is removed, because others may need it, and nobody lists it. */
function withoutRemovals(place: BlockPlace): BlockPlace {
  return { ...place, remove: async () => {}, async *names() {}, close: async () => {} };
}
