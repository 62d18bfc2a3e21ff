import { createHash, type Hash } from 'node:crypto';
import PQueue from 'p-queue';
import { FileError } from '../../drive/errors.ts';
import type { Entry, FileEntry, Files } from '../../drive/files.ts';
import type { DeadProperty } from '../../state/properties.ts';
import type { RequestState } from '../../state/state.ts';
import type { Log } from '../../util/log.ts';
import { SingleFlight } from '../../util/single-flight.ts';
import {
  CHECKSUMS_MAX,
  checksumListOf,
  checksumsProperty,
  isChecksums,
  UnreadChecksums,
} from './checksums.ts';

/** The algorithms that davgate computes, by their names in `oc:checksums`. */
export type Algorithm = 'SHA1' | 'MD5' | 'SHA256';

/** The checksums that every file gets: what rclone compares, with the vendors `nextcloud` and `owncloud`. */
const OF_ALL: readonly Algorithm[] = ['SHA1', 'MD5'];

/** Maximum number of files that are read at a time for their checksums, for all clients together, and for one request. */
const READS_MAX = 4;

/** What one request lends: a part of `Context`. */
export interface ChecksumsContext {
  readonly drive: {
    readonly files: Pick<Files, 'known' | 'stat' | 'read'>;
    readonly state: Pick<RequestState, 'properties'>;
  };
  readonly exchange: { readonly signal: AbortSignal };
  readonly log: Pick<Log, 'warn'>;
}

/**
 * Computes checksums of files and keeps them where those that clients give are kept (`checksums.ts`), so that each file is
 * read once for them. `isForAll`: every file has them (`--checksums all`); otherwise only files for which clients gave some,
 * or asked with `X-Recalculate-Hash`.
 */
export class ComputedChecksums {
  readonly #reads = new PQueue({ concurrency: READS_MAX });
  readonly #flights = new SingleFlight<string, readonly string[]>();
  /** Files whose checksums are kept. An entry never changes. */
  readonly #kept = new WeakSet<FileEntry>();

  constructor(private readonly isForAll: boolean) {}

  /** Returns `known` with the checksums of `algorithms` that are missing in it, and keeps them. Reads the file at most once. */
  async of(
    context: ChecksumsContext,
    file: FileEntry,
    known: readonly string[],
    algorithms: readonly Algorithm[],
  ): Promise<readonly string[]> {
    const missing = missingIn(known, algorithms);
    if (missing.length === 0) return known;
    const key = [file.id, file.contentHash ?? file.rev, ...missing].join(' ');
    const read = async (signal: AbortSignal) =>
      joined(known, await readChecksums(context, file, missing, signal));
    return this.#flights.run(
      key,
      async (signal) => {
        const checksums = await this.#reads.add(() => read(signal), { signal });
        await this.#keepIfThere(context, file, checksums);
        return checksums;
      },
      context.exchange.signal,
    );
  }

  /**
   * Returns `dead` with the checksums of all files among `entries`, computed where they are missing. A file that cannot be read
   * has `UnreadChecksums` instead, whose status `statusOf` tells. Returns `dead` itself if nothing is missing.
   */
  async completed(
    context: ChecksumsContext,
    entries: readonly Entry[],
    dead: ReadonlyMap<string, readonly DeadProperty[]>,
    statusOf: (error: FileError) => number,
  ): Promise<ReadonlyMap<string, readonly DeadProperty[]>> {
    if (!this.isForAll) return dead;
    const files = entries.filter((entry) => entry.kind === 'file');
    const knownOf = (file: FileEntry) => checksumListOf(file, dead.get(file.id) ?? []);
    const incomplete = files.filter((file) => missingIn(knownOf(file), OF_ALL).length > 0);
    if (incomplete.length === 0) return dead;
    const all = new Map(dead);
    await inTurns(incomplete, async (file) => {
      const property = await this.#propertyOf(context, file, knownOf(file), statusOf);
      const others = (dead.get(file.id) ?? []).filter((one) => !isChecksums(one));
      if (property) all.set(file.id, [...others, property]);
    });
    return all;
  }

  async #propertyOf(
    context: ChecksumsContext,
    file: FileEntry,
    known: readonly string[],
    statusOf: (error: FileError) => number,
  ): Promise<DeadProperty | undefined> {
    try {
      return checksumsProperty(file, await this.of(context, file, known, OF_ALL));
    } catch (error) {
      context.exchange.signal.throwIfAborted();
      if (error instanceof FileError) return new UnreadChecksums(statusOf(error), error.message);
      throw error;
    }
  }

  /** Returns the body of an upload, which computes the checksums that the client has not `given` while it passes. */
  passing(body: AsyncIterable<Uint8Array>, given: readonly string[]): PassingBytes {
    return new PassingBytes(body, this.isForAll ? missingIn(given, OF_ALL) : []);
  }

  /** Returns the bytes of a download of the whole file, and keeps its checksums when they have passed. */
  downloaded(
    context: ChecksumsContext,
    file: FileEntry,
    bytes: AsyncIterable<Uint8Array>,
  ): AsyncIterable<Uint8Array> {
    return this.isForAll && !this.#kept.has(file) ? this.#hashed(context, file, bytes) : bytes;
  }

  async *#hashed(
    context: ChecksumsContext,
    file: FileEntry,
    bytes: AsyncIterable<Uint8Array>,
  ): AsyncGenerator<Uint8Array> {
    const known = await this.#knownOf(context, file);
    const passing = new PassingBytes(bytes, known ? missingIn(known, OF_ALL) : []);
    yield* passing.bytes;
    if (known && passing.checksums.length > 0)
      await this.#keepIfThere(context, file, joined(known, passing.checksums));
  }

  /** Returns the checksums of the file that are kept; `undefined` if they cannot be read, which fails no download. */
  async #knownOf({ drive, log }: ChecksumsContext, file: FileEntry): Promise<readonly string[] | undefined> {
    try {
      const known = checksumListOf(file, (await drive.state.properties.of([file.id])).get(file.id) ?? []);
      if (missingIn(known, OF_ALL).length === 0) this.#kept.add(file);
      return known;
    } catch (error) {
      log.warn('cannot read the checksums of a file', { reason: String(error) });
      return undefined;
    }
  }

  /**
   * Keeps checksums of a file that was read, which may have taken long: nobody would remove those of a deleted file, and those of
   * a replaced one would take the place of the newer ones.
   */
  async #keepIfThere(
    context: ChecksumsContext,
    file: FileEntry,
    checksums: readonly string[],
  ): Promise<void> {
    const { files } = context.drive;
    try {
      const there = files.known(file.path) ?? (await files.stat(file.path));
      if (there?.kind !== 'file' || there.id !== file.id || there.rev !== file.rev) return;
    } catch (error) {
      return warn(context, error);
    }
    await this.keep(context, file, checksums);
  }

  /** Keeps the checksums of a file in place of others. Without room or state it only warns: they can be computed again. */
  async keep(context: ChecksumsContext, file: FileEntry, checksums: readonly string[]): Promise<void> {
    const property = checksumsProperty(file, checksums);
    if (!property) return;
    try {
      await context.drive.state.properties.change(file.id, [{ set: property }]);
      if (missingIn(checksums, OF_ALL).length === 0) this.#kept.add(file);
    } catch (error) {
      warn(context, error);
    }
  }
}

function warn({ log }: ChecksumsContext, error: unknown): void {
  log.warn('cannot store the checksums of a file', { reason: String(error) });
}

/** Bytes that are hashed while they pass, in the pieces in which they are read. */
export class PassingBytes {
  /** `SHA1:…` and the like, in the order of the algorithms; empty until the last byte has passed. */
  checksums: readonly string[] = [];
  readonly bytes: AsyncIterable<Uint8Array>;
  readonly #hashes: readonly (readonly [Algorithm, Hash])[];

  constructor(bytes: AsyncIterable<Uint8Array>, algorithms: readonly Algorithm[]) {
    this.#hashes = algorithms.map((algorithm) => [algorithm, createHash(algorithm)]);
    this.bytes = algorithms.length === 0 ? bytes : this.#hashed(bytes);
  }

  async *#hashed(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    for await (const piece of bytes) {
      for (const [, hash] of this.#hashes) hash.update(piece);
      yield piece;
    }
    this.checksums = this.#hashes.map(([algorithm, hash]) => `${algorithm}:${hash.digest('hex')}`);
  }
}

async function readChecksums(
  { drive }: ChecksumsContext,
  file: FileEntry,
  algorithms: readonly Algorithm[],
  signal: AbortSignal,
): Promise<readonly string[]> {
  const passing = new PassingBytes(drive.files.read(file, undefined, signal), algorithms);
  let sizeBytes = 0;
  for await (const { length } of passing.bytes) sizeBytes += length;
  if (sizeBytes === file.sizeBytes) return passing.checksums;
  throw new FileError('broken', `${file.path} has ${file.sizeBytes} bytes, and ${sizeBytes} were read`);
}

/** Returns both lists as one, without the first ones that are too many. */
export function joined(known: readonly string[], computed: readonly string[]): readonly string[] {
  return [...known, ...computed].slice(-CHECKSUMS_MAX);
}

function missingIn(checksums: readonly string[], algorithms: readonly Algorithm[]): readonly Algorithm[] {
  return algorithms.filter((algorithm) => !checksumIn(checksums, algorithm));
}

/** Returns the checksum of this algorithm, if it is one of them. */
export function checksumIn(checksums: readonly string[], algorithm: Algorithm): string | undefined {
  return checksums.find((checksum) => checksum.toUpperCase().startsWith(`${algorithm}:`));
}

/** Calls `work` for each item, for a few at a time, and for no other one after a failure. */
async function inTurns<Item>(items: readonly Item[], work: (item: Item) => Promise<void>): Promise<void> {
  let next = 0;
  const lane = async () => {
    for (let item = items[next++]; item !== undefined; item = items[next++]) await work(item);
  };
  const lanes = Array.from({ length: READS_MAX }, lane);
  try {
    await Promise.all(lanes);
  } finally {
    next = items.length;
  }
}
