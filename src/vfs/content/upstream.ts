import { ApiError } from '../../api/errors.ts';
import type { FileEntry, Remote } from '../../api/remote.ts';
import type { Clock } from '../../util/clock.ts';
import { BLOCK_BYTES } from '../../util/content-hash.ts';
import type { Log } from '../../util/log.ts';
import type { ByteRange } from '../../util/ranges.ts';
import { FileError } from '../errors.ts';

/** Where bytes come from, and what reading them needs. */
export interface Upstream {
  readonly remote: Pick<Remote, 'download'>;
  readonly clock: Clock;
  readonly log: Log;
}

/** How often a download goes on after it was cut, before it has got on by a block. */
const RESUMES_MAX = 5;

/** Before the second and each later try; the first is made at once. */
const RESUME_DELAY_MS = 500;

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
  let cuts = 0;
  let safePosition = position;
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
    if (position - safePosition >= BLOCK_BYTES) {
      safePosition = position;
      cuts = 0;
    }
    cuts++;
    if (cuts > RESUMES_MAX) throw cut ?? damaged(file, 'the service ended it early, again and again');
    log.warn('a download was cut and goes on', { position, of: range.end, cuts });
    if (cuts > 1) await clock.sleep(RESUME_DELAY_MS, signal);
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
