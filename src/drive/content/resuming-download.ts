import { ApiError } from '../../api/errors.ts';
import type { FileEntry, Remote } from '../../api/remote.ts';
import { type Clock, elapsedMs, type Instant } from '../../util/clock.ts';
import type { Log } from '../../util/log.ts';
import type { ByteRange } from '../../util/ranges.ts';
import { FileError } from '../errors.ts';

/** The parts that a download uses. */
export interface DownloadTools {
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
 * Downloads exactly the bytes of `range`, in pieces of any size. A download that is cut is resumed at the byte where it
 * broke. Throws `ApiError`, `FileError` `broken` for an answer that cannot be right, or the signal's reason.
 */
export async function* resumingDownload(
  { remote, clock, log }: DownloadTools,
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
        if (position > range.end) throw unreadable(file, 'the service sent more bytes than were requested');
        yield chunk;
      }
    } catch (failure) {
      if (!isCut(failure)) throw failure;
      cut = failure;
    }
    if (position >= range.end) return;
    log.warn('a download was cut and is resumed', { position, of: range.end });
    if (!firstCut || position - firstCut.position >= PROGRESS_BYTES) {
      firstCut = { at: clock.instant(), position };
      continue;
    }
    if (elapsedMs(clock, firstCut.at) >= RESUME_MS_MAX)
      throw cut ?? unreadable(file, 'the service ended the download early again and again');
    await clock.sleep(RESUME_DELAY_MS, signal);
  }
}

function isCut(failure: unknown): boolean {
  return failure instanceof ApiError && failure.details.cut !== undefined;
}

function checkRevision(got: FileEntry, wanted: FileEntry): void {
  if (got.rev !== wanted.rev) throw unreadable(wanted, 'the service sent another revision');
}

/** The error for a download that cannot be right. */
export function unreadable(file: FileEntry, why: string): FileError {
  return new FileError('broken', `${file.name} could not be read: ${why}`);
}
