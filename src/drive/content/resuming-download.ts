import { ApiError } from '../../api/errors.ts';
import type { FileEntry, Remote } from '../../api/remote.ts';
import { type Clock, elapsedMs, type Instant } from '../../util/clock.ts';
import type { Log } from '../../util/log.ts';
import type { ByteRange } from '../../util/ranges.ts';
import { FileError } from '../errors.ts';

/** Where bytes come from, and what reading them needs. */
export interface Upstream {
  readonly remote: Pick<Remote, 'download'>;
  readonly clock: Clock;
  readonly log: Log;
}

/** How long a download that is cut again and again is resumed without progress, in ms: as long as a call is retried. */
const RESUME_MS_MAX = 25_000;

/** Progress since the first cut that makes the next one a first cut again, in bytes. */
const PROGRESS_BYTES = 256 * 1024;

/** Delay before a download is resumed, in ms; after a first cut it is resumed at once. */
const RESUME_DELAY_MS = 1_000;

/**
 * The bytes of `range`, exactly, in whatever pieces they come. A download that is cut goes on at the byte
 * where it broke. Throws `ApiError`, `FileError` `broken` for an answer that cannot be right, or the
 * signal's reason.
 */
export async function* upstreamBytes(
  { remote, clock, log }: Upstream,
  file: FileEntry,
  range: ByteRange,
  signal: AbortSignal,
  options: { readonly ahead: boolean } = { ahead: false },
): AsyncGenerator<Uint8Array, void, undefined> {
  let position = range.start;
  let firstCut: { readonly at: Instant; readonly position: number } | undefined;
  while (position < range.end) {
    const isWhole = position === 0 && range.end === file.sizeBytes;
    const wanted = isWhole ? undefined : { start: position, end: range.end };
    const download = await remote.download(file, wanted, signal, options);
    checkRevision(download.file, file);
    let cut: unknown;
    try {
      for await (const chunk of download.bytes) {
        position += chunk.length;
        if (position > range.end) throw damaged(file, 'more bytes came than were asked for');
        yield chunk;
      }
    } catch (failure) {
      if (!isCut(failure)) throw failure;
      cut = failure;
    }
    if (position >= range.end) return;
    log.warn('a download was cut and goes on', { position, of: range.end });
    if (!firstCut || position - firstCut.position >= PROGRESS_BYTES) {
      firstCut = { at: clock.instant(), position };
      continue;
    }
    if (elapsedMs(clock, firstCut.at) >= RESUME_MS_MAX)
      throw cut ?? damaged(file, 'the service ended it early, again and again');
    await clock.sleep(RESUME_DELAY_MS, signal);
  }
}

function isCut(failure: unknown): boolean {
  return failure instanceof ApiError && failure.details.cut !== undefined;
}

function checkRevision(got: FileEntry, wanted: FileEntry): void {
  if (got.rev !== wanted.rev) throw damaged(wanted, 'the service sent another revision');
}

function damaged(file: FileEntry, how: string): FileError {
  return new FileError('broken', `${file.name} could not be read: ${how}`);
}
