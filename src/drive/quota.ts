import type { Quota, Remote } from '../api/remote.ts';
import { ageMs, type Clock, type Moment, momentNow } from '../util/clock.ts';
import type { Log } from '../util/log.ts';
import { SingleFlight } from '../util/single-flight.ts';
import type { FreeSpace } from './files.ts';

/** How long an answer is good; our own writes are counted in meanwhile. Explorer and davfs2 ask with each folder. */
const FRESH_MS = 60_000;

/** What the account has room for. */
export class QuotaCache {
  readonly #flights = new SingleFlight<'quota', Quota | undefined>();
  #known: { readonly quota: Quota | undefined; readonly at: Moment } | undefined;
  #writtenBytes = 0;

  constructor(
    private readonly remote: Pick<Remote, 'quota'>,
    private readonly clock: Clock,
    private readonly log: Log,
  ) {}

  async free(signal?: AbortSignal): Promise<FreeSpace | undefined> {
    if (!this.#known || ageMs(this.clock, this.#known.at) >= FRESH_MS)
      await this.#flights.run('quota', (stop) => this.#ask(stop), signal);
    const quota = this.#known?.quota;
    if (!quota) return undefined;
    const usedBytes = Math.max(0, quota.usedBytes + this.#writtenBytes);
    return { usedBytes, availableBytes: Math.max(0, quota.allocatedBytes - usedBytes) };
  }

  /** The drive has grown by so much, or shrunk. */
  add(bytes: number): void {
    this.#writtenBytes += bytes;
  }

  async #ask(signal: AbortSignal): Promise<Quota | undefined> {
    let quota: Quota | undefined;
    const writtenBefore = this.#writtenBytes;
    try {
      quota = await this.remote.quota(signal);
    } catch (error) {
      signal.throwIfAborted();
      this.log.warn('the free space is not known', { reason: String(error) });
    }
    // What was written while we asked may be counted in the answer or not.
    this.#writtenBytes -= writtenBefore;
    this.#known = { quota, at: momentNow(this.clock) };
    return quota;
  }
}
