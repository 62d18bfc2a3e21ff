import { ApiError } from '../../api/errors.ts';
import type { Download, FileEntry, Remote } from '../../api/remote.ts';
import type { ByteSource } from '../../util/byte-source.ts';
import { type Clock, elapsedMs, type Instant } from '../../util/clock.ts';
import type { Log } from '../../util/log.ts';
import type { ByteRange } from '../../util/ranges.ts';
import { FileError } from '../errors.ts';

/** What a download uses. */
export interface DownloadDeps {
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

/** Downloads exactly the bytes of a range of a file. A download that is cut is resumed at the byte where it broke. */
export class ResumingDownload implements ByteSource {
  #position: number;
  #download: Download | undefined;
  #firstCut: { readonly at: Instant; readonly position: number } | undefined;

  constructor(
    private readonly deps: DownloadDeps,
    private readonly file: FileEntry,
    private readonly range: ByteRange,
    private readonly signal: AbortSignal,
    private readonly options: { readonly ahead: boolean } = { ahead: false },
  ) {
    this.#position = range.start;
  }

  /** Throws `ApiError`, `FileError` `broken` for an answer that cannot be right, or the signal's reason. */
  async read(into: Buffer): Promise<number> {
    for (;;) {
      const bytes = await this.#readOnce(into);
      if (bytes !== 'cut') return bytes;
    }
  }

  /** Returns `'cut'` when the download was cut and may be resumed. */
  async #readOnce(into: Buffer): Promise<number | 'cut'> {
    const { file, range } = this;
    this.#download ??= await this.#open();
    let cut: unknown;
    try {
      const bytes = await this.#download.read(into);
      this.#position += bytes;
      if (this.#position > range.end)
        throw unreadable(file, 'the service sent more bytes than were requested');
      if (bytes > 0) return bytes;
    } catch (failure) {
      if (!isCut(failure)) throw failure;
      cut = failure;
    }
    if (this.#position >= range.end) return 0;
    this.#download = undefined;
    await this.#pause(cut);
    return 'cut';
  }

  async #open(): Promise<Download> {
    const { file, range, signal } = this;
    const start = this.#position;
    const isWhole = start === 0 && range.end === file.sizeBytes;
    const wanted = isWhole ? undefined : { start, end: range.end };
    const download = await this.deps.remote.download(file, wanted, signal, this.options);
    if (download.file.rev !== file.rev) throw unreadable(file, 'the service sent another revision');
    return download;
  }

  /** Waits before a cut download is resumed. Throws `cut` when it has been resumed for too long without progress. */
  async #pause(cut: unknown): Promise<void> {
    const { clock, log } = this.deps;
    const position = this.#position;
    log.warn('a download was cut and is resumed', { position, of: this.range.end });
    if (!this.#firstCut || position - this.#firstCut.position >= PROGRESS_BYTES) {
      this.#firstCut = { at: clock.instant(), position };
      return;
    }
    if (elapsedMs(clock, this.#firstCut.at) >= RESUME_MS_MAX)
      throw cut ?? unreadable(this.file, 'the service ended the download early again and again');
    await clock.sleep(RESUME_DELAY_MS, this.signal);
  }
}

function isCut(failure: unknown): boolean {
  return failure instanceof ApiError && failure.details.cut !== undefined;
}

/** The error for a download that cannot be right. */
export function unreadable(file: FileEntry, why: string): FileError {
  return new FileError('broken', `${file.name} could not be read: ${why}`);
}
