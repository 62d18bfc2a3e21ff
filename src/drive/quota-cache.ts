import type { Quota, Remote } from '../api/remote.ts';
import { ageMs, type Clock, type Moment, momentNow } from '../util/clock.ts';
import type { Log } from '../util/log.ts';
import { SingleFlight } from '../util/single-flight.ts';
import type { FreeSpace } from './files.ts';

/** How long an answer is used, in ms. Explorer and davfs2 ask with each folder; own writes are counted meanwhile. */
const FRESH_MS = 60_000;

/** The free space of the account, with davgate's own writes since the last answer of the service. */
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

  /** Counts a change of the drive's size; negative when it shrank. */
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
      this.log.warn('cannot ask the storage service for the free space', { reason: String(error) });
    }
    // Whether writes during the request are in the answer is unknown: they are counted again.
    this.#writtenBytes -= writtenBefore;
    this.#known = { quota, at: momentNow(this.clock) };
    return quota;
  }
}
