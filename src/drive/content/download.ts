import type { FileEntry } from '../../api/remote.ts';
import type { ByteRange } from '../../util/ranges.ts';
import type { BlockCache } from './block-cache.ts';
import { BlockSource } from './block-source.ts';
import { CachedContentCheck } from './cached-content-check.ts';
import type { Upstream } from './resuming-download.ts';
import { readWhole } from './verified-read.ts';

export interface ReaderParts extends Upstream {
  readonly cache: BlockCache;
}

export interface Reader {
  /**
   * The bytes of exactly this revision: `range`, or all of them without one. They end early only by throwing,
   * and all of them end only if they have the file's content hash. When the iteration is ended or `signal`
   * aborted, the download is aborted at once, unless another reader needs the same block.
   *
   * Throws `ApiError`, `FileError` `broken`, or the signal's reason.
   */
  read(file: FileEntry, range: ByteRange | undefined, signal: AbortSignal): AsyncIterable<Uint8Array>;
}

/** How bytes come from the service and from the block cache. */
export function createReader({ remote, clock, log, cache }: ReaderParts): Reader {
  const upstream: Upstream = { remote, clock, log };
  const check = new CachedContentCheck(cache, clock, log);
  const blocks = new BlockSource(upstream, cache, check);
  const sources = { upstream, cache, blocks, check };
  return {
    read(file, range, signal) {
      const { start, end } = range ?? { start: 0, end: file.sizeBytes };
      const isWhole = start === 0 && end >= file.sizeBytes;
      return endable(signal, (life) =>
        isWhole
          ? readWhole(sources, file, life)
          : blocks.read(file, { start, end: Math.min(end, file.sizeBytes) }, life),
      );
    },
  };
}

/**
 * An iteration whose end reaches the bottom at once: `return` of a generator alone would wait for the step
 * that is under way, and that step for the service.
 */
function endable(
  signal: AbortSignal,
  start: (signal: AbortSignal) => AsyncGenerator<Uint8Array, void, undefined>,
): AsyncIterable<Uint8Array> {
  return {
    [Symbol.asyncIterator]() {
      const life = new AbortController();
      const bytes = start(life.signal);
      const end = (reason: unknown) => {
        signal.removeEventListener('abort', leave);
        life.abort(reason);
        // Also where it rests between two steps: nobody may come for the next one.
        return bytes.return();
      };
      const leave = () => void end(signal.reason).catch(() => {});
      if (signal.aborted) leave();
      else signal.addEventListener('abort', leave, { once: true });
      return {
        async next() {
          let step: IteratorResult<Uint8Array, void> | undefined;
          try {
            step = await bytes.next();
          } finally {
            if (step?.done !== false) signal.removeEventListener('abort', leave);
          }
          // Ended from outside: that is not the end of the bytes.
          if (step.done) life.signal.throwIfAborted();
          return step;
        },
        async return() {
          await end(new Error('the reader went away'));
          return { done: true, value: undefined };
        },
      };
    },
  };
}
