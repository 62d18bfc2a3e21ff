import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type BlockCache, openBlockCache } from '../../src/drive/content/block-cache.ts';
import { type ContentReader, createContentReader } from '../../src/drive/content/content-reader.ts';
import type { FileEntry } from '../../src/drive/files.ts';
import { contentHashOf } from '../../src/util/content-hash.ts';
import { type Log, silentLog } from '../../src/util/log.ts';
import { pathOf } from '../../src/util/path.ts';
import type { ByteRange } from '../../src/util/ranges.ts';
import { joined } from './byte-source.ts';
import { pseudoRandomBytes } from './bytes.ts';
import { BytesRemote } from './bytes-remote.ts';
import { ManualClock } from './manual-clock.ts';

/** The path of `file`. */
export const FILM = pathOf(['film.bin']);

interface Content {
  readonly bytes: Buffer;
  readonly contentHash: string;
}

function contentOf(sizeBytes: number): Content {
  const bytes = pseudoRandomBytes(sizeBytes, sizeBytes);
  return { bytes, contentHash: contentHashOf(bytes) };
}

/** The latest content of `file`: most tests of a test file use one size, and no test changes it. */
let latest: Content | undefined;

/** Maximum size of `latest`, in bytes: it stays in memory after the test. */
const KEPT_BYTES_MAX = 32 * 1024 ** 2;

export interface ReaderSetUp {
  readonly remote: BytesRemote;
  readonly clock: ManualClock;
  readonly cache: BlockCache;
  readonly reader: ContentReader;
  readonly directory: string;
  /** Makes a new revision of the file, with `sizeBytes` bytes. */
  file(sizeBytes: number): { readonly bytes: Buffer; readonly entry: FileEntry };
  /** Returns the ranges that the service was asked for. */
  asked(): (ByteRange | undefined)[];
  /** Reads a file or a range of it. */
  read(file: FileEntry, range?: ByteRange, signal?: AbortSignal): Promise<Buffer>;
  /** Opens a new reader on the same block cache. */
  restart(): Promise<ContentReader>;
  /** Returns the number of block files, without those being written. */
  blocksOnDisk(): Promise<number>;
  close(): Promise<void>;
}

/** Sets up a reader of files in memory, with a block cache in a temporary directory. */
export async function setUpReader(
  options: { readonly log?: Log; readonly sizeBytesMax?: number } = {},
): Promise<ReaderSetUp> {
  const { log = silentLog, sizeBytesMax = 200 * 1024 ** 2 } = options;
  const directory = await mkdtemp(join(tmpdir(), 'davgate-reader-'));
  const remote = new BytesRemote();
  const clock = new ManualClock();
  const cache = await openBlockCache({ directory, sizeBytesMax, clock, log });
  const reader = createContentReader({ remote, cache, clock, log });
  const caches = [cache];
  return {
    remote,
    clock,
    cache,
    reader,
    directory,
    file(sizeBytes) {
      const content = latest?.bytes.length === sizeBytes ? latest : contentOf(sizeBytes);
      if (sizeBytes <= KEPT_BYTES_MAX) latest = content;
      return { bytes: content.bytes, entry: remote.put(FILM, content.bytes, content.contentHash) };
    },
    asked: () => remote.calls.flatMap((call) => (call.what === 'download' ? [call.range] : [])),
    read: (file, range, signal = new AbortController().signal) => joined(reader.read(file, range, signal)),
    async restart() {
      await cache.close();
      const next = await openBlockCache({ directory, sizeBytesMax, clock, log });
      caches.push(next);
      return createContentReader({ remote, cache: next, clock, log });
    },
    async blocksOnDisk() {
      const entries = await readdir(directory, { recursive: true });
      return entries.filter((path) => /^v1.[0-9a-f]{2}.[^/]+$/.test(path)).length;
    },
    async close() {
      for (const open of caches) await open.close();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

/** Waits for turns of the event loop, in which work without timers and network completes. */
export async function settle(turns = 50): Promise<void> {
  for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve));
}
