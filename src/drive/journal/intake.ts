import { randomUUID } from 'node:crypto';
import { type Journal, JournalFull, type PendingWrite, type StagedBody } from '../../state/journal.ts';
import { BodyReader } from '../../util/abort.ts';
import { type Clock, instantIn, LONG_AGO, remainingMs } from '../../util/clock.ts';
import { join, nameOf, type Path, parentOf, ROOT } from '../../util/path.ts';
import { FileError } from '../errors.ts';
import type { Entry, FileEntry, Files, FolderEntry, FreeSpace, WriteOptions, Written } from '../files.ts';
import { modeAllows } from '../local-files.ts';
import type { PathLocks } from '../path-locks.ts';
import { isPlaceholder } from '../placeholders.ts';
import type { JournalCapacity } from './capacity.ts';
import type { Overlay } from './overlay.ts';
import { newFileId, type OverlayEntries, pendingEntry } from './overlay-entries.ts';
import { PendingFile, type PendingFiles } from './pending-files.ts';
import type { Sender } from './sender.ts';

export interface IntakeDeps {
  /** The tree below the journal. */
  readonly base: Files;
  readonly journal: Journal;
  readonly pending: PendingFiles;
  readonly overlay: Overlay;
  readonly sender: Sender;
  readonly shown: OverlayEntries;
  readonly capacity: JournalCapacity;
  /** Changes of one path take turns. */
  readonly turns: PathLocks;
  readonly clock: Clock;
  /** Records that a name was added to `folder` or removed. */
  readonly touch: (folder: FolderEntry) => void;
  /** How long a new empty file waits for its body, in ms. */
  readonly bodyWaitMs: number;
}

/** The entries at the path of a write. */
interface Place {
  /** Looked up only when no write is pending at the path; with pending writes, delivery finds out about the folder. */
  readonly folder: FolderEntry | undefined;
  readonly newest: PendingFile | undefined;
  /** The file in the tree below. Looked up only when no write is pending at the path. */
  readonly original: FileEntry | undefined;
  /** The file as clients see it. */
  readonly current: FileEntry | undefined;
}

/** Takes writes into the journal. */
export class Intake {
  #space: FreeSpace | undefined;

  constructor(private readonly deps: IntakeDeps) {}

  async write(
    path: Path,
    body: AsyncIterable<Uint8Array>,
    options: WriteOptions,
    signal?: AbortSignal,
  ): Promise<Written> {
    const { journal, turns, capacity } = this.deps;
    const place = await this.#placeOf(path, { isPinned: false });
    refuse(path, place, options);
    this.#refuseBeyondSpace(path, options.sizeBytes ?? 0, place);
    const whole = announced(body, options.sizeBytes, signal);
    return capacity.during(whole, options.sizeBytes, async (counted) => {
      const staged = await journal.stage(counted).catch(asFileError);
      return this.#orDiscard(staged, () =>
        turns.exclusive([path], () => this.#accept(path, staged, options)),
      );
    });
  }

  /** Runs `accept`, and removes the body from the disk when it fails. */
  async #orDiscard(staged: StagedBody, accept: () => Promise<Written>): Promise<Written> {
    try {
      return await accept();
    } catch (error) {
      await this.deps.journal.discard(staged);
      throw asFileError(error);
    }
  }

  /** See `Files.keepPlaceholder`. */
  keepPlaceholder(path: Path, bodyWaitMs: number): Promise<Written> {
    const { base, journal, pending, sender, shown, turns, clock } = this.deps;
    return turns.exclusive([path], async () => {
      const newest = pending.newest(path);
      if (newest) {
        if (isWaitingForBody(newest, clock)) {
          newest.write = { ...newest.write, dueMs: clock.now() + bodyWaitMs };
          newest.bodyDueBy = instantIn(clock, bodyWaitMs);
          sender.offer(newest);
          await journal.change(newest.write).catch(asFileError);
        }
        return { entry: pendingEntry(newest.write), created: false };
      }
      const original = await base.statForWrite(path, { isPinned: false });
      if (original) return { entry: shown.of(original), created: false };
      const staged = await journal.stage(nothing()).catch(asFileError);
      return this.#orDiscard(staged, () => this.#accept(path, staged, { mode: { if: 'any' } }, bodyWaitMs));
    });
  }

  /** Sends an empty file at `path` that waits for a body. */
  commitPlaceholder(path: Path): void {
    const newest = this.deps.pending.newest(path);
    if (!newest || !isWaitingForBody(newest, this.deps.clock)) return;
    newest.write = { ...newest.write, dueMs: 0 };
    newest.bodyDueBy = LONG_AGO;
    this.deps.sender.offer(newest);
  }

  /** See `Files.setModified`. */
  setModified(path: Path, modifiedMs: number): Promise<Entry> {
    const { base, journal, pending, sender, shown, turns } = this.deps;
    return turns.exclusive([path], async () => {
      const newest = pending.newest(path);
      // A write that has landed only has to be removed from the journal.
      if (newest && !newest.landed) {
        newest.write = { ...newest.write, modifiedMs: wholeSeconds(modifiedMs) };
        pending.changed(newest);
        await journal.change(newest.write).catch(asFileError);
        return pendingEntry(newest.write);
      }
      await sender.flush(pending.at(path));
      return shown.of(await base.setModified(path, modifiedMs));
    });
  }

  /** Runs in the turn of the path, so that only delivery changes its writes meanwhile. */
  async #accept(path: Path, body: StagedBody, options: WriteOptions, askedWaitMs?: number): Promise<Written> {
    const { journal, pending, sender, touch, clock } = this.deps;
    const place = await this.#placeOf(path, { isPinned: options.mode.if !== 'any' });
    refuse(path, place, options);
    const bodyWaitMs = askedWaitMs ?? this.#bodyWaitMs(place, body);
    const { newest, current, folder } = place;
    const superseded = newest?.state === 'waiting' && !newest.wasSent ? newest : undefined;
    const file = new PendingFile(
      this.#writeOf(path, place, body, options, bodyWaitMs),
      body.sizeBytes - replacedBytes(place, superseded),
    );
    file.state = 'accepting';
    if (bodyWaitMs > 0) file.bodyDueBy = instantIn(clock, bodyWaitMs);
    if (superseded) {
      superseded.state = 'suspended';
      sender.withdraw(superseded);
    }
    pending.add(file);
    try {
      await journal.accept(file.write, body, superseded?.write.id);
    } catch (error) {
      sender.remove(file);
      if (superseded) {
        superseded.state = 'waiting';
        sender.offer(superseded);
      }
      throw error;
    }
    file.state = 'waiting';
    if (superseded) sender.remove(superseded, file);
    pending.changed(file);
    sender.offer(file);
    if (!current && folder) touch(folder);
    return { entry: pendingEntry(file.write), created: !current };
  }

  /** Returns how long a file waits for its body, in ms: 0 unless it is new and empty. */
  #bodyWaitMs({ newest, current }: Place, { sizeBytes }: StagedBody): number {
    const { clock, bodyWaitMs } = this.deps;
    const isWaiting = newest !== undefined && isWaitingForBody(newest, clock);
    if (sizeBytes > 0 || (current && !isWaiting)) return 0;
    return isWaiting ? Math.max(remainingMs(clock, newest.bodyDueBy), bodyWaitMs) : bodyWaitMs;
  }

  #writeOf(
    path: Path,
    { newest, original, current, folder }: Place,
    { sizeBytes, contentHash }: StagedBody,
    { modifiedMs }: WriteOptions,
    bodyWaitMs: number,
  ): PendingWrite {
    const id = randomUUID();
    const nowMs = this.deps.clock.now();
    return {
      id,
      // An existing file keeps the letter case of its name.
      path: current?.path ?? join(folder?.path ?? parentOf(path), nameOf(path)),
      fileId: current?.id ?? newFileId(id),
      sizeBytes,
      contentHash,
      modifiedMs: wholeSeconds(modifiedMs ?? nowMs),
      acceptedMs: nowMs,
      dueMs: bodyWaitMs > 0 ? nowMs + bodyWaitMs : 0,
      // Even a write without a condition must not overwrite a change that was made elsewhere meanwhile.
      replaces: newest ? newest.write.replaces : original?.rev,
      replacesHash: newest ? newest.write.replacesHash : original?.contentHash,
      folderId: newest ? newest.write.folderId : folderIdOf(folder),
    };
  }

  async #placeOf(path: Path, how: { readonly isPinned: boolean }): Promise<Place> {
    const { base, pending, overlay, shown } = this.deps;
    const newest = pending.newest(path);
    if (newest)
      return { folder: undefined, newest, original: undefined, current: pendingEntry(newest.write) };
    const folder = await overlay.stat(parentOf(path));
    if (folder?.kind !== 'folder') {
      const why = folder ? 'is a file' : 'does not exist';
      throw new FileError('parent-missing', `${parentOf(path)}, the parent of ${path}, ${why}`);
    }
    let original = await base.statForWrite(path, how);
    if (original && isPlaceholder(original)) {
      // A run without a journal has left it.
      await base.commitPlaceholder(path);
      original = await base.statForWrite(path, how);
    }
    if (original?.kind === 'folder') throw new FileError('is-a-folder', `${path} is a folder`);
    return { folder, newest, original, current: original && shown.of(original) };
  }

  /** Throws `no-space` by the last known quota. Does not wait for the current one: the service checks it anyway. */
  #refuseBeyondSpace(path: Path, sizeBytes: number, { current }: Place): void {
    const { base, pending } = this.deps;
    base.freeSpace().then(
      (space) => {
        this.#space = space;
      },
      () => {},
    );
    const neededBytes = sizeBytes - (current?.sizeBytes ?? 0);
    if (!this.#space || neededBytes <= 0) return;
    if (neededBytes > this.#space.availableBytes - pending.growthBytes)
      throw new FileError('no-space', `not enough space in the account for ${path}`);
  }
}

function folderIdOf(folder: FolderEntry | undefined): string | undefined {
  return folder?.path === ROOT ? undefined : folder?.id;
}

function refuse(path: Path, { current }: Place, { mode }: WriteOptions): void {
  if (!modeAllows(mode, current)) throw new FileError('changed', `${path} was changed meanwhile`);
}

function replacedBytes({ newest, original }: Place, superseded: PendingFile | undefined): number {
  if (superseded) return superseded.write.sizeBytes - superseded.growthBytes;
  return newest?.write.sizeBytes ?? original?.sizeBytes ?? 0;
}

function isWaitingForBody({ state, write, bodyDueBy }: PendingFile, clock: Clock): boolean {
  return state === 'waiting' && write.sizeBytes === 0 && bodyDueBy > clock.instant();
}

/** The service stores whole seconds. */
function wholeSeconds(ms: number): number {
  return Math.floor(ms / 1000) * 1000;
}

/** Yields `body`, and throws `incomplete` unless it has `sizeBytes`. Ends at once when `signal` is aborted. */
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
    `the body has ${came} bytes instead of the ${announcedBytes} announced; nothing was written, send the file again`,
  );
}

/** Throws `error`, a full journal as `no-space`. */
function asFileError(error: unknown): never {
  if (error instanceof JournalFull) throw new FileError('no-space', error.message, { cause: error });
  throw error;
}

async function* nothing(): AsyncIterable<Uint8Array> {}
