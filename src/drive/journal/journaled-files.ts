import type { Journal } from '../../state/journal.ts';
import { endedBy } from '../../util/ended-by.ts';
import type { Path } from '../../util/path.ts';
import { FileError } from '../errors.ts';
import type { Files, RelocateOptions, RemoveOptions, WriteMode, WriteOptions, Written } from '../files.ts';
import type { Gaps } from '../guarded-remote.ts';
import type { JournalRoom } from './capacity.ts';
import type { Accepting } from './intake.ts';
import type { PendingReading } from './overlay.ts';
import { isNewId, type ShownEntries, tagOf } from './overlay-entries.ts';
import type { PendingFiles } from './pending-files.ts';
import type { Drain } from './sender.ts';

export interface JournaledParts {
  /** The tree below the journal. */
  readonly base: Files;
  readonly journal: Journal;
  readonly pending: PendingFiles;
  readonly reading: PendingReading;
  readonly accepting: Accepting;
  readonly drain: Drain;
  readonly shown: ShownEntries;
  readonly room: JournalRoom;
  /** Changes at or around one place take turns. */
  readonly turns: Gaps;
  readonly goesThrough: (path: Path) => boolean;
  readonly isDeletionPermanent: () => boolean;
  readonly forgetKept: (path: Path, ids: readonly string[]) => Promise<void>;
}

/**
 * A drive over a drive: writes go to the journal and are seen at once; what cannot be done to a file that is
 * pending is done to the tree below, once the file has landed there.
 */
export function createJournaledFiles(parts: JournaledParts): Files {
  const { base, pending, reading, accepting, drain, shown, room, turns, goesThrough } = parts;

  /** Resolves when nothing is pending at these places and below. Throws what hinders it. */
  const landed = async (...paths: readonly Path[]): Promise<void> => {
    if (pending.files > 0) await drain.flush(paths.flatMap((path) => pending.within(path)));
  };

  /** What the protocol knows by its tag the tree below knows by its revision. */
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

  const writeThrough = async (
    path: Path,
    body: AsyncIterable<Uint8Array>,
    options: WriteOptions,
    signal: AbortSignal | undefined,
  ): Promise<Written> => {
    const mode = await modeBelow(path, options.mode);
    return shownWritten(await base.write(path, body, { ...options, mode }, signal));
  };

  /**
   * What does not fit waits for the service, as it would without a journal. Its turn begins when the body is whole and
   * ends with the commit: others do not wait for a client that sends slowly. What was accepted meanwhile lands first.
   */
  const writeLarge = async (
    path: Path,
    body: AsyncIterable<Uint8Array>,
    options: WriteOptions,
    signal: AbortSignal | undefined,
  ): Promise<Written> => {
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
        turns.open([path], turn).catch(fail);
      });
    try {
      return await writeThrough(path, endedBy(body, beginTurn), options, signal);
    } finally {
      end();
    }
  };

  const shownWritten = ({ entry, created }: Written): Written => ({ entry: shown.of(entry), created });

  return {
    stat: (path, signal) => reading.stat(path, signal),
    statForWrite: (path, options, signal) => reading.statForWrite(path, options, signal),
    list: (path, signal) => reading.list(path, signal),
    walk: (path, signal) => reading.walk(path, signal),
    read: (file, range, signal) => reading.read(file, range, signal),
    async write(path, body, options, signal) {
      if (goesThrough(path)) return writeThrough(path, body, options, signal);
      if (room.fits(options.sizeBytes)) return accepting.write(path, body, options, signal);
      return writeLarge(path, body, options, signal);
    },
    async keepPlaceholder(path, holdMs) {
      return goesThrough(path)
        ? shownWritten(await base.keepPlaceholder(path, holdMs))
        : accepting.keepPlaceholder(path, holdMs);
    },
    async commitPlaceholder(path) {
      accepting.commitPlaceholder(path);
      await base.commitPlaceholder(path);
    },
    createFolder: (path) =>
      turns.open([path], async () => {
        if (pending.newest(path)) throw new FileError('exists', `something is at ${path} already`);
        return base.createFolder(path);
      }),
    remove: (path, options) => turns.open([path], () => remove(parts, path, options, landed)),
    copy: (from, to, options) =>
      turns.open([from, to], async () => {
        await landed(from, to);
        const below = await revisionsBelow(from, to, options);
        return shownWritten(await base.copy(from, to, { ...options, ...below }));
      }),
    move: (from, to, options) =>
      turns.open([from, to], async () => {
        await landed(from, to);
        const below = await revisionsBelow(from, to, options);
        return shownWritten(await base.move(from, to, { ...options, ...below }));
      }),
    setModified: (path, modifiedMs) => accepting.setModified(path, modifiedMs),
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
      turns.open([path], async () => {
        await landed(path);
        return base.shareLink(path, settings);
      }),
    async unshareLink(path) {
      const newest = pending.newest(path);
      if (!newest || !isNewId(newest.write.fileId)) await base.unshareLink(path);
    },
  };
}

/** What was never sent is only forgotten, unless it is to be recovered from the service's trash. */
async function remove(
  parts: JournaledParts,
  path: Path,
  options: RemoveOptions,
  landed: (path: Path) => Promise<void>,
): Promise<void> {
  const { base, pending } = parts;
  const { rev, recoverable } = options;
  if (rev !== undefined) {
    // The service is to compare, so it has to have what was meant.
    await landed(path);
    const entry = await base.stat(path);
    if (entry?.kind !== 'file' || tagOf(entry) !== rev) throw notAsExpected(path);
    return base.remove(path, { recoverable, rev: entry.rev });
  }
  if (pending.files === 0 || pending.within(path).length === 0) return base.remove(path, options);
  if (!recoverable && parts.isDeletionPermanent()) return cancel(parts, path, options);
  await landed(path);
  return base.remove(path, options);
}

async function cancel(parts: JournaledParts, path: Path, options: RemoveOptions): Promise<void> {
  const { base, journal, pending, drain } = parts;
  try {
    await keepBack(parts, path);
    const isBelow = (await base.stat(path)) !== undefined;
    // First below: were the journal's copy gone already, a failure here would have lost it.
    if (isBelow || pending.at(path).length === 0) await base.remove(path, options);
    const files = pending.within(path);
    const newIds = files.map(({ write }) => write.fileId).filter(isNewId);
    await journal.forget(files.map(({ write }) => write.id));
    for (const file of files) pending.delete(file);
    await parts.forgetKept(path, newIds);
  } catch (error) {
    for (const file of pending.within(path)) {
      if (file.state === 'kept') file.state = 'waiting';
      drain.offer(file);
    }
    throw error;
  }
}

/** None at `path` and below is sent any more; those under way have come to their end. */
async function keepBack({ pending, drain }: JournaledParts, path: Path): Promise<void> {
  for (;;) {
    const files = pending.within(path);
    for (const file of files.filter(({ state }) => state === 'waiting')) {
      file.state = 'kept';
      drain.withdraw(file);
    }
    const sending = files.filter(({ state }) => state === 'sending');
    if (sending.length === 0) return;
    await drain.settled(sending);
  }
}

function notAsExpected(path: Path): FileError {
  return new FileError('changed', `${path} is not what was expected`);
}
