import { Condition } from '../../util/wait.ts';
import type { UploadCalls, UploadSession } from './upload-calls.ts';

/**
 * The buffers of upload parts, reused from part to part. All uploads share one budget, but each may always have one
 * buffer, so that no upload waits for the slow sender of another.
 */
export class PartBuffers {
  readonly #idle: Buffer[] = [];
  readonly #returned = new Condition();
  #lentCount = 0;

  constructor(
    readonly bufferBytes: number,
    private readonly countMax: number,
  ) {}

  /** Takes a buffer for an upload that has `ownCount` of them, once there is one. Rejects with the signal's reason. */
  async take(ownCount: () => number, signal: AbortSignal): Promise<Buffer> {
    while (ownCount() > 0 && this.#lentCount >= this.countMax) await this.#returned.wait(signal);
    signal.throwIfAborted();
    this.#lentCount++;
    return this.#idle.pop() ?? Buffer.allocUnsafeSlow(this.bufferBytes);
  }

  /** Returns a buffer that nobody reads any more. */
  giveBack(buffer: Buffer): void {
    if (this.#idle.length < this.countMax) this.#idle.push(buffer);
    this.drop();
  }

  /** Drops a buffer that an aborted call may still read. */
  drop(): void {
    this.#lentCount--;
    // Without uploads no memory is kept for them.
    if (this.#lentCount === 0) this.#idle.length = 0;
    this.#returned.notify();
  }
}

/** A part whose bytes no longer change. */
export interface GatheredPart {
  readonly offset: number;
  readonly bytes: Uint8Array;
  /** The buffer that holds the bytes. */
  readonly buffer: Buffer;
  /** Returns the content hash of the bytes alone. */
  digest(): string;
}

/**
 * Sends the parts of one upload session, several in parallel. Calls `fail` with the first failure; `fail` must abort
 * `signal`, and with it all other calls.
 */
export class PartSender {
  readonly #session: Promise<UploadSession>;
  readonly #underWay = new Set<Promise<void>>();
  /** The buffers that were taken from `buffers`. */
  readonly #taken = new Set<Buffer>();

  constructor(
    private readonly calls: Pick<UploadCalls, 'startSession' | 'appendSession'>,
    private readonly buffers: PartBuffers,
    private readonly inFlightMax: number,
    private readonly signal: AbortSignal,
    private readonly fail: (reason: unknown) => void,
  ) {
    this.#session = calls.startSession(signal);
    this.#session.catch(fail);
  }

  /** Takes a buffer for the next part, once fewer than `inFlightMax` parts are under way. */
  async takeBuffer(): Promise<Buffer> {
    while (this.#underWay.size >= this.inFlightMax) await Promise.race(this.#underWay);
    const buffer = await this.buffers.take(() => this.#taken.size, this.signal);
    this.#taken.add(buffer);
    return buffer;
  }

  /** Starts to send a part that is not the last one. */
  send(part: GatheredPart): void {
    const sending: Promise<void> = this.#append(part, false)
      .catch(this.fail)
      .finally(() => this.#underWay.delete(sending));
    this.#underWay.add(sending);
  }

  /** Sends the last part, which closes the session, once all others have arrived. Rejects with the first failure. */
  async close(last: GatheredPart): Promise<UploadSession> {
    await Promise.all(this.#underWay);
    this.signal.throwIfAborted();
    await this.#append(last, true);
    return await this.#session;
  }

  /** Drops the buffers that were not given back. They are not reused, because aborted calls may still read them. */
  release(): void {
    for (const _buffer of this.#taken) this.buffers.drop();
    this.#taken.clear();
  }

  async #append(part: GatheredPart, last: boolean): Promise<void> {
    const { offset, bytes, buffer } = part;
    const contentHash = part.digest();
    await this.calls.appendSession(await this.#session, { offset, bytes, last, contentHash }, this.signal);
    if (this.#taken.delete(buffer)) this.buffers.giveBack(buffer);
  }
}
