import type { Path } from '../../util/path.ts';
import { FileError } from '../errors.ts';
import type { Files, RelocateOptions, WriteMode, Written } from '../files.ts';
import type { PathLocks } from '../path-locks.ts';
import { type Spool, writeSpooled } from '../spool/spool.ts';
import type { JournalCapacity } from './capacity.ts';
import type { Intake } from './intake.ts';
import { type JournaledRemover, notAsExpected } from './journaled-remover.ts';
import type { Overlay } from './overlay.ts';
import { isNewId, type OverlayEntries, tagOf } from './overlay-entries.ts';
import type { PendingFiles } from './pending-files.ts';
import type { Sender } from './sender.ts';

export interface JournaledFilesDeps {
  /** The tree below the journal. */
  readonly base: Files;
  readonly pending: PendingFiles;
  readonly overlay: Overlay;
  readonly intake: Intake;
  readonly remover: JournaledRemover;
  readonly sender: Sender;
  readonly shown: OverlayEntries;
  readonly capacity: JournalCapacity;
  /** Changes of one path take turns. */
  readonly turns: PathLocks;
  readonly goesThrough: (path: Path) => boolean;
  /** Not for bodies that go to the journal, which reads them at once. */
  readonly spool: Spool | undefined;
}

/**
 * Makes a drive on top of another: writes go to the journal and are visible at once. Other changes of a pending file
 * wait until it has landed in the tree below, and are made there.
 */
export function createJournaledFiles(deps: JournaledFilesDeps): Files {
  const { base, pending, overlay, intake, remover, sender, shown, capacity, turns, goesThrough } = deps;

  /** Resolves when no write is pending at these paths and below. Throws what hinders a write. */
  const landed = async (...paths: readonly Path[]): Promise<void> => {
    if (pending.files > 0) await sender.flush(paths.flatMap((path) => pending.within(path)));
  };

  /** Returns the revision in the tree below of the file that clients see with the tag `rev`. */
  const revBelow = async (path: Path, rev: string): Promise<string> => {
    const entry = await base.stat(path);
    if (entry?.kind === 'file' && tagOf(entry) === rev) return entry.rev;
    throw notAsExpected(path);
  };

  const modeBelow = async (path: Path, mode: WriteMode): Promise<WriteMode> =>
    mode.if === 'rev' ? { if: 'rev', rev: await revBelow(path, mode.rev) } : mode;

  const revisionsBelow = async (from: Path, to: Path, { rev, targetRev }: RelocateOptions) => ({
    ...(rev !== undefined && { rev: await revBelow(from, rev) }),
    ...(targetRev !== undefined && { targetRev: await revBelow(to, targetRev) }),
  });

  const toService: Files['write'] = async (path, body, options, signal) => {
    const mode = await modeBelow(path, options.mode);
    return shownWritten(await base.write(path, body, { ...options, mode }, signal));
  };

  /**
   * Writes a body that does not fit into the journal through to the service. Its turn begins when the body is whole and
   * ends with the commit, so that others do not wait for a slow client. Writes accepted meanwhile land first.
   */
  const writeLarge: Files['write'] = async (path, body, options, signal) => {
    await landed(path);
    let end = (): void => undefined;
    const over = new Promise<void>((resolve) => {
      end = resolve;
    });
    const beginTurn = () =>
      new Promise<void>((begin, fail) => {
        const turn = async () => {
          await landed(path);
          begin();
          await over;
        };
        turns.exclusive([path], turn).catch(fail);
      });
    try {
      return await toService(path, endedBy(body, beginTurn), options, signal);
    } finally {
      end();
    }
  };

  const writeThrough = writeSpooled(toService, deps.spool);
  const writeLargeSpooled = writeSpooled(writeLarge, deps.spool);

  const shownWritten = ({ entry, created }: Written): Written => ({ entry: shown.of(entry), created });

  return {
    known: (path) => overlay.known(path),
    stat: (path, signal) => overlay.stat(path, signal),
    statForWrite: (path, options, signal) => overlay.statForWrite(path, options, signal),
    list: (path, signal) => overlay.list(path, signal),
    walk: (path, signal) => overlay.walk(path, signal),
    inMemory: (file) => overlay.inMemory(file),
    read: (file, range, signal) => overlay.read(file, range, signal),
    async write(path, body, options, signal) {
      if (goesThrough(path)) return writeThrough(path, body, options, signal);
      if (capacity.fits(options.sizeBytes)) return intake.write(path, body, options, signal);
      return writeLargeSpooled(path, body, options, signal);
    },
    async keepPlaceholder(path, bodyWaitMs) {
      return goesThrough(path)
        ? shownWritten(await base.keepPlaceholder(path, bodyWaitMs))
        : intake.keepPlaceholder(path, bodyWaitMs);
    },
    async commitPlaceholder(path) {
      intake.commitPlaceholder(path);
      await base.commitPlaceholder(path);
    },
    createFolder: (path) =>
      turns.exclusive([path], async () => {
        if (pending.newest(path)) throw new FileError('exists', `${path} exists`);
        return base.createFolder(path);
      }),
    remove: (path, options) => turns.exclusive([path], () => remover.remove(path, options)),
    copy: (from, to, options) =>
      turns.exclusive([from, to], async () => {
        await landed(from, to);
        const below = await revisionsBelow(from, to, options);
        return shownWritten(await base.copy(from, to, { ...options, ...below }));
      }),
    move: (from, to, options) =>
      turns.exclusive([from, to], async () => {
        await landed(from, to);
        const below = await revisionsBelow(from, to, options);
        return shownWritten(await base.move(from, to, { ...options, ...below }));
      }),
    setModified: (path, modifiedMs) => intake.setModified(path, modifiedMs),
    async freeSpace(signal) {
      const space = await base.freeSpace(signal);
      if (!space) return undefined;
      const usedBytes = Math.max(0, space.usedBytes + pending.growthBytes);
      return { usedBytes, availableBytes: Math.max(0, space.availableBytes - pending.growthBytes) };
    },
    async sharedLink(path, signal) {
      const newest = pending.newest(path);
      return newest && isNewId(newest.write.fileId) ? undefined : base.sharedLink(path, signal);
    },
    shareLink: (path, settings) =>
      turns.exclusive([path], async () => {
        await landed(path);
        return base.shareLink(path, settings);
      }),
    async unshareLink(path) {
      const newest = pending.newest(path);
      if (!newest || !isNewId(newest.write.fileId)) await base.unshareLink(path);
    },
    async sharedLinks(path, signal) {
      const newest = path === undefined ? undefined : pending.newest(path);
      return newest && isNewId(newest.write.fileId) ? [] : base.sharedLinks(path, signal);
    },
    createLink: (path, settings) =>
      turns.exclusive([path], async () => {
        await landed(path);
        return base.createLink(path, settings);
      }),
    changeLink: (path, url, change) => base.changeLink(path, url, change),
    revokeLink: (path, url) => base.revokeLink(path, url),
  };
}

/** Yields `body`, and ends when `last` has resolved. Throws what `last` throws. */
async function* endedBy(
  body: AsyncIterable<Uint8Array>,
  last: () => Promise<void>,
): AsyncIterable<Uint8Array> {
  yield* body;
  await last();
}
