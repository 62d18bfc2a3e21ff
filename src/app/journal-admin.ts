import { randomUUID } from 'node:crypto';
import { FileError } from '../drive/errors.ts';
import type { Journal, LostWrite, PendingWrite } from '../state/journal.ts';
import type { Clock } from '../util/clock.ts';
import type { Path } from '../util/path.ts';

/** A write that was acknowledged and is not at the service: pending or lost. */
export interface KeptWrite {
  /** Commands also take any unique beginning of it. */
  readonly id: string;
  readonly drive: string;
  readonly state: 'waiting' | 'lost';
  /** `undefined`: unknown. */
  readonly path: string | undefined;
  readonly sizeBytes: number;
  /** Milliseconds since 1970. */
  readonly writtenMs: number | undefined;
  /** The reason why the write is not at the service. */
  readonly reason: string | undefined;
}

/** The outcome of a command on one write; `refused` says why nothing was done. */
export type KeptOutcome =
  | { readonly write: KeptWrite; readonly refused?: string }
  | { readonly refused: string; readonly write?: undefined };

/** Lists and handles the pending and lost writes of all drives, for `davgate journal`. */
export interface JournalAdmin {
  list(): Promise<readonly KeptWrite[]>;
  /** Returns the bytes of a write; `undefined` if none, or more than one, has this id. */
  body(
    id: string,
  ): Promise<{ readonly write: KeptWrite; readonly bytes: AsyncIterable<Uint8Array> } | undefined>;
  retry(id: string): Promise<KeptOutcome>;
  discard(id: string): Promise<KeptOutcome>;
}

/** The pending writes of a running gateway. */
export interface RunningWrites {
  /** Returns why the write with this id has not landed. */
  problemOf(id: string): string | undefined;
  /** Sends the write now. Throws why it cannot land. */
  retry(id: string): Promise<void>;
  /** Returns whether the write was still pending. */
  discard(id: string): Promise<boolean>;
  /** Writes a new file. Throws `FileError` `changed` if the path is taken. */
  write(path: Path, bytes: AsyncIterable<Uint8Array>, sizeBytes: number): Promise<void>;
}

/** The part of a drive that `createJournalAdmin` uses. */
export interface JournaledDrive {
  readonly journal: Journal;
  /** Absent without a running gateway. */
  readonly running?: RunningWrites;
}

export function createJournalAdmin(drives: ReadonlyMap<string, JournaledDrive>, clock: Clock): JournalAdmin {
  const list = async (): Promise<readonly KeptWrite[]> => {
    const each = [...drives].map(async ([drive, { journal, running }]) => [
      ...(await journal.all()).map((write) => waiting(drive, write, running?.problemOf(write.id))),
      ...(await journal.lost()).map((write) => lost(drive, write)),
    ]);
    return (await Promise.all(each)).flat();
  };
  const find = async (id: string): Promise<{ write: KeptWrite; drive: JournaledDrive } | string> => {
    const found = (await list()).filter((one) => one.id === id || shortIdOf(one).startsWith(id));
    const write = found.find((one) => one.id === id) ?? found[0];
    const drive = write && drives.get(write.drive);
    if (!write || !drive || id === '') return `no write has the id ${id}; davgate journal lists them`;
    if (found.length > 1 && write.id !== id)
      return `more than one write has an id that begins with ${id}; give one of these in full: ${found.map((one) => one.id).join(', ')}`;
    return { write, drive };
  };
  return {
    list,
    async body(id) {
      const found = await find(id);
      if (typeof found === 'string') return undefined;
      const { write, drive } = found;
      return { write, bytes: bodyOf(drive, write) };
    },
    async retry(id) {
      const found = await find(id);
      if (typeof found === 'string') return { refused: found };
      const { write, drive } = found;
      const refused = await (write.state === 'waiting'
        ? retryWaiting(drive, write)
        : retryLost(drive, write, clock));
      return { write, ...(refused !== undefined && { refused }) };
    },
    async discard(id) {
      const found = await find(id);
      if (typeof found === 'string') return { refused: found };
      const { write, drive } = found;
      if (write.state === 'lost') await drive.journal.dropLost(write.id);
      else if (!drive.running) await drive.journal.forget([write.id]);
      else if (!(await drive.running.discard(write.id)))
        return { write, refused: 'it has just reached the storage service' };
      return { write };
    },
  };
}

/** Returns the part of an id that tables show. The ids of lost writes begin with a time, which is left out. */
export function shortIdOf({ id, state }: KeptWrite): string {
  if (state === 'waiting') return id;
  return /^[^-]*-(.*)$/s.exec(id)?.[1] ?? id;
}

function waiting(drive: string, write: PendingWrite, reason: string | undefined): KeptWrite {
  const { id, path, sizeBytes, acceptedMs: writtenMs } = write;
  return { id, drive, state: 'waiting', path, sizeBytes, writtenMs, reason };
}

function lost(drive: string, { name: id, path, sizeBytes, writtenMs, reason }: LostWrite): KeptWrite {
  return { id, drive, state: 'lost', path, sizeBytes, writtenMs, reason };
}

function bodyOf({ journal }: JournaledDrive, { state, id }: KeptWrite): AsyncIterable<Uint8Array> {
  return state === 'waiting' ? journal.read(id) : journal.readLost(id);
}

/** Returns why the write was not sent; `undefined` if it was. */
async function retryWaiting({ running }: JournaledDrive, { id }: KeptWrite): Promise<string | undefined> {
  if (!running) return 'davgate is not running; the write is sent at the next start';
  try {
    await running.retry(id);
    return undefined;
  } catch (error) {
    return reasonOf(error);
  }
}

/** Restores a lost write to its path if that is free. Returns why it was not; `undefined` if it was. */
async function retryLost(
  { journal, running }: JournaledDrive,
  write: KeptWrite,
  clock: Clock,
): Promise<string | undefined> {
  const { id, sizeBytes } = write;
  if (write.path === undefined) return 'its path is unknown; export it';
  // The cast: the path was checked when the write was accepted.
  const path = write.path as Path;
  try {
    if (running) await running.write(path, journal.readLost(id), sizeBytes);
    else await acceptAgain(journal, path, id, clock.now());
    await journal.dropLost(id);
    return undefined;
  } catch (error) {
    if (error instanceof FileError && (error.fault === 'changed' || error.fault === 'is-a-folder'))
      return `${path} exists again; export this write and decide which one to keep`;
    return reasonOf(error);
  }
}

/** Accepts the content as a new file, to be sent at the next start; if the path is taken by then, under another name. */
async function acceptAgain(journal: Journal, path: Path, name: string, nowMs: number): Promise<void> {
  const staged = await journal.stage(journal.readLost(name));
  const { sizeBytes, contentHash } = staged;
  const id = randomUUID();
  const modifiedMs = Math.floor(nowMs / 1000) * 1000;
  const write: PendingWrite = {
    ...{ id, path, fileId: `pending:${id}`, sizeBytes, contentHash, modifiedMs, acceptedMs: nowMs, dueMs: 0 },
    ...{ replaces: undefined, replacesHash: undefined, folderId: undefined },
  };
  await journal.accept(write, staged);
}

/** Returns the message of a `FileError`; any other error is a defect of davgate and is thrown. */
function reasonOf(error: unknown): string {
  if (error instanceof FileError) return error.message;
  throw error;
}
