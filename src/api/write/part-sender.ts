import { Part } from './part.ts';
import type { PartBuffers } from './part-buffers.ts';
import type { UploadCalls, UploadSession } from './upload-calls.ts';

/**
 * Sends the parts of one upload session, several in parallel. Calls `fail` with the first failure; `fail` must abort
 * `signal`, and with it all other calls.
 */
export class PartSender {
  readonly #session: Promise<UploadSession>;
  readonly #underWay = new Set<Promise<void>>();
  /** Parts whose buffers belong to `buffers`. */
  readonly #parts = new Set<Part>();

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

  /** Returns an empty part at `offset`, once fewer than `inFlightMax` parts are under way. */
  async newPart(offset: number, onBlock: (sha256: Buffer) => void): Promise<Part> {
    while (this.#underWay.size >= this.inFlightMax) await Promise.race(this.#underWay);
    const buffer = await this.buffers.take(() => this.#parts.size, this.signal);
    const part = new Part(offset, buffer.length, buffer, onBlock);
    this.#parts.add(part);
    return part;
  }

  /** Starts to send a part that is not the last one. */
  send(part: Part): void {
    const sending: Promise<void> = this.#append(part, false)
      .catch(this.fail)
      .finally(() => this.#underWay.delete(sending));
    this.#underWay.add(sending);
  }

  /** Sends the last part, which closes the session, once all others have arrived. Rejects with the first failure. */
  async close(last: Part): Promise<UploadSession> {
    await Promise.all(this.#underWay);
    this.signal.throwIfAborted();
    await this.#append(last, true);
    return await this.#session;
  }

  /** Drops the buffers that were not given back. They are not reused, because aborted calls may still read them. */
  release(): void {
    for (const _part of this.#parts) this.buffers.drop();
    this.#parts.clear();
  }

  async #append(part: Part, last: boolean): Promise<void> {
    const { offset, bytes } = part;
    const contentHash = part.digest();
    await this.calls.appendSession(await this.#session, { offset, bytes, last, contentHash }, this.signal);
    if (this.#parts.delete(part)) this.buffers.giveBack(part.buffer);
  }
}
