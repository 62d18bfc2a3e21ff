import { randomUUID } from 'node:crypto';
import { type Journal, JournalFull, type PendingWrite, type StagedBody } from '../../state/journal.ts';
import { type Clock, instantIn, LONG_AGO, remainingMs } from '../../util/clock.ts';
import { join, nameOf, type Path, parentOf, ROOT } from '../../util/path.ts';
import { FileError } from '../errors.ts';
import type { Entry, FileEntry, Files, FolderEntry, FreeSpace, WriteOptions, Written } from '../files.ts';
import type { Gaps } from '../guarded-remote.ts';
import { modeAllows } from '../local-files.ts';
import { isPlaceholder } from '../placeholders.ts';
import { BodyReader } from '../upload/body-reader.ts';
import type { JournalRoom } from './capacity.ts';
import type { PendingReading } from './overlay.ts';
import { newFileId, pendingEntry, type ShownEntries } from './overlay-entries.ts';
import { PendingFile, type PendingFiles } from './pending-files.ts';
import type { Drain } from './sender.ts';

export interface AcceptingParts {
  /** The tree below the journal. */
  readonly base: Files;
  readonly journal: Journal;
  readonly pending: PendingFiles;
  readonly reading: PendingReading;
  readonly drain: Drain;
  readonly shown: ShownEntries;
  readonly room: JournalRoom;
  /** Changes at or around one place take turns. */
  readonly turns: Gaps;
  readonly clock: Clock;
  /** A name has come to `folder`, or has gone. */
  readonly touch: (folder: FolderEntry) => void;
  /** How long an empty file waits for its body, ms. */
  readonly holdMs: number;
}

/** What a write finds at its place. */
interface Place {
  /** Looked for only where nothing is pending: what is goes with its folder, whose fate it finds out when it lands. */
  readonly folder: FolderEntry | undefined;
  readonly newest: PendingFile | undefined;
  /** Of the tree below; looked for only where nothing is pending. */
  readonly original: FileEntry | undefined;
  /** What is to be seen there. */
  readonly current: FileEntry | undefined;
}

/** How writes get into the journal. */
export class Accepting {
  #space: FreeSpace | undefined;

  constructor(private readonly parts: AcceptingParts) {}

  async write(
    path: Path,
    body: AsyncIterable<Uint8Array>,
    options: WriteOptions,
    signal?: AbortSignal,
  ): Promise<Written> {
    const { journal, turns, room } = this.parts;
    const place = await this.#placeOf(path, { isPinned: false });
    refuse(path, place, options);
    this.#refuseBeyondSpace(path, options.sizeBytes ?? 0, place);
    const whole = announced(body, options.sizeBytes, signal);
    return room.during(whole, options.sizeBytes, async (counted) => {
      const staged = await journal.stage(counted).catch(asFileError);
      return this.#orDiscard(staged, () => turns.open([path], () => this.#accept(path, staged, options)));
    });
  }

  /** A body that was not accepted would stay on the disk. */
  async #orDiscard(staged: StagedBody, accept: () => Promise<Written>): Promise<Written> {
    try {
      return await accept();
    } catch (error) {
      await this.parts.journal.discard(staged);
      throw asFileError(error);
    }
  }

  /** As `Files.keepPlaceholder`. */
  keepPlaceholder(path: Path, holdMs: number): Promise<Written> {
    const { base, journal, pending, drain, shown, turns, clock } = this.parts;
    return turns.open([path], async () => {
      const newest = pending.newest(path);
      if (newest) {
        if (isWaitingForBody(newest, clock)) {
          newest.write = { ...newest.write, dueMs: clock.now() + holdMs };
          newest.heldUntil = instantIn(clock, holdMs);
          drain.offer(newest);
          await journal.change(newest.write).catch(asFileError);
        }
        return { entry: pendingEntry(newest.write), created: false };
      }
      const original = await base.statForWrite(path, { isPinned: false });
      if (original) return { entry: shown.of(original), created: false };
      const staged = await journal.stage(nothing()).catch(asFileError);
      return this.#orDiscard(staged, () => this.#accept(path, staged, { mode: { if: 'any' } }, holdMs));
    });
  }

  /** Nothing waits at `path` for a body any more. */
  commitPlaceholder(path: Path): void {
    const newest = this.parts.pending.newest(path);
    if (!newest || !isWaitingForBody(newest, this.parts.clock)) return;
    newest.write = { ...newest.write, dueMs: 0 };
    newest.heldUntil = LONG_AGO;
    this.parts.drain.offer(newest);
  }

  /** As `Files.setModified`. */
  setModified(path: Path, modifiedMs: number): Promise<Entry> {
    const { base, journal, pending, drain, shown, turns } = this.parts;
    return turns.open([path], async () => {
      const newest = pending.newest(path);
      // One that has landed is only to be crossed out.
      if (newest && !newest.landed) {
        newest.write = { ...newest.write, modifiedMs: wholeSeconds(modifiedMs) };
        pending.changed(newest);
        await journal.change(newest.write).catch(asFileError);
        return pendingEntry(newest.write);
      }
      await drain.flush(pending.at(path));
      return shown.of(await base.setModified(path, modifiedMs));
    });
  }

  /** In turn, so that nothing but a landing changes what is here. */
  async #accept(path: Path, body: StagedBody, options: WriteOptions, askedHoldMs?: number): Promise<Written> {
    const { journal, pending, drain, touch, clock } = this.parts;
    const place = await this.#placeOf(path, { isPinned: options.mode.if !== 'any' });
    refuse(path, place, options);
    const holdMs = askedHoldMs ?? this.#bodyWaitMs(place, body);
    const { newest, current, folder } = place;
    const superseded = newest?.state === 'waiting' && !newest.wasSent ? newest : undefined;
    const file = new PendingFile(
      this.#writeOf(path, place, body, options, holdMs),
      body.sizeBytes - replacedBytes(place, superseded),
    );
    file.state = 'accepting';
    if (holdMs > 0) file.heldUntil = instantIn(clock, holdMs);
    if (superseded) {
      superseded.state = 'kept';
      drain.withdraw(superseded);
    }
    pending.add(file);
    try {
      await journal.accept(file.write, body, superseded?.write.id);
    } catch (error) {
      pending.delete(file);
      if (superseded) {
        superseded.state = 'waiting';
        drain.offer(superseded);
      }
      throw error;
    }
    file.state = 'waiting';
    if (superseded) pending.delete(superseded);
    pending.changed(file);
    drain.offer(file);
    if (!current && folder) touch(folder);
    return { entry: pendingEntry(file.write), created: !current };
  }

  /** How long a file waits for the body that is about to follow, in ms: one that is empty, and new. */
  #bodyWaitMs({ newest, current }: Place, { sizeBytes }: StagedBody): number {
    const { clock, holdMs } = this.parts;
    const isWaiting = newest !== undefined && isWaitingForBody(newest, clock);
    if (sizeBytes > 0 || (current && !isWaiting)) return 0;
    return isWaiting ? Math.max(remainingMs(clock, newest.heldUntil), holdMs) : holdMs;
  }

  #writeOf(
    path: Path,
    { newest, original, current, folder }: Place,
    { sizeBytes, contentHash }: StagedBody,
    { modifiedMs }: WriteOptions,
    holdMs: number,
  ): PendingWrite {
    const id = randomUUID();
    const nowMs = this.parts.clock.now();
    return {
      id,
      // What is there keeps its name, in whatever letter case it is written to.
      path: current?.path ?? join(folder?.path ?? parentOf(path), nameOf(path)),
      fileId: current?.id ?? newFileId(id),
      sizeBytes,
      contentHash,
      modifiedMs: wholeSeconds(modifiedMs ?? nowMs),
      acceptedMs: nowMs,
      dueMs: holdMs > 0 ? nowMs + holdMs : 0,
      // Nobody but us is to be overwritten unseen: not even by a write without a condition.
      replaces: newest ? newest.write.replaces : original?.rev,
      replacesHash: newest ? newest.write.replacesHash : original?.contentHash,
      folderId: newest ? newest.write.folderId : folderIdOf(folder),
    };
  }

  async #placeOf(path: Path, how: { readonly isPinned: boolean }): Promise<Place> {
    const { base, pending, reading, shown } = this.parts;
    const newest = pending.newest(path);
    if (newest)
      return { folder: undefined, newest, original: undefined, current: pendingEntry(newest.write) };
    const folder = await reading.stat(parentOf(path));
    if (folder?.kind !== 'folder') {
      const why = folder ? 'is a file' : 'is not there';
      throw new FileError('parent-missing', `${parentOf(path)}, which should hold ${path}, ${why}`);
    }
    let original = await base.statForWrite(path, how);
    if (original && isPlaceholder(original)) {
      // Held back by a run without a journal.
      await base.commitPlaceholder(path);
      original = await base.statForWrite(path, how);
    }
    if (original?.kind === 'folder') throw new FileError('is-a-folder', `${path} is a folder`);
    return { folder, newest, original, current: original && shown.of(original) };
  }

  /** By what was last heard: nobody waits for the answer, and the service has the last word. */
  #refuseBeyondSpace(path: Path, sizeBytes: number, { current }: Place): void {
    const { base, pending } = this.parts;
    base.freeSpace().then(
      (space) => {
        this.#space = space;
      },
      () => {},
    );
    const neededBytes = sizeBytes - (current?.sizeBytes ?? 0);
    if (!this.#space || neededBytes <= 0) return;
    if (neededBytes > this.#space.availableBytes - pending.growthBytes)
      throw new FileError('no-space', `the account has no room for ${path}`);
  }
}

function folderIdOf(folder: FolderEntry | undefined): string | undefined {
  return folder?.path === ROOT ? undefined : folder?.id;
}

function refuse(path: Path, { current }: Place, { mode }: WriteOptions): void {
  if (!modeAllows(mode, current)) throw new FileError('changed', `${path} is not what was expected`);
}

function replacedBytes({ newest, original }: Place, superseded: PendingFile | undefined): number {
  if (superseded) return superseded.write.sizeBytes - superseded.growthBytes;
  return newest?.write.sizeBytes ?? original?.sizeBytes ?? 0;
}

function isWaitingForBody({ state, write, heldUntil }: PendingFile, clock: Clock): boolean {
  return state === 'waiting' && write.sizeBytes === 0 && heldUntil > clock.instant();
}

/** The service keeps no more. */
function wholeSeconds(ms: number): number {
  return Math.floor(ms / 1000) * 1000;
}

/** `body`, which is to have `sizeBytes`; ends at once when `signal` is aborted. Throws `incomplete`. */
async function* announced(
  body: AsyncIterable<Uint8Array>,
  sizeBytes: number | undefined,
  signal: AbortSignal = new AbortController().signal,
): AsyncIterable<Uint8Array> {
  const reader = new BodyReader(body, signal);
  let receivedBytes = 0;
  try {
    for (let piece = await reader.next(); piece; piece = await reader.next()) {
      receivedBytes += piece.byteLength;
      if (sizeBytes !== undefined && receivedBytes > sizeBytes) throw incomplete(sizeBytes, 'more');
      yield piece;
    }
    if (sizeBytes !== undefined && receivedBytes < sizeBytes)
      throw incomplete(sizeBytes, `only ${receivedBytes}`);
  } finally {
    reader.close();
  }
}

function incomplete(announcedBytes: number, came: string): FileError {
  return new FileError(
    'incomplete',
    `${announcedBytes} bytes were announced and ${came} came: nothing was written; send the file again`,
  );
}

/** Rethrows. */
function asFileError(error: unknown): never {
  if (error instanceof JournalFull) throw new FileError('no-space', error.message, { cause: error });
  throw error;
}

async function* nothing(): AsyncIterable<Uint8Array> {}
