import type { Remote, UploadSession } from '../../api/remote.ts';
import { Part } from './part.ts';
import type { PartBuffers } from './part-buffers.ts';

/**
 * Sends the parts of one upload session, several at a time. The first failure goes to `fail` at once, which
 * is to abort `signal` and with it all other calls.
 */
export class PartSender {
  readonly #session: Promise<UploadSession>;
  readonly #underWay = new Set<Promise<void>>();
  /** Parts in lent buffers. */
  readonly #held = new Set<Part>();

  constructor(
    private readonly remote: Pick<Remote, 'startSession' | 'appendSession'>,
    private readonly buffers: PartBuffers,
    private readonly inFlightMax: number,
    private readonly signal: AbortSignal,
    private readonly fail: (reason: unknown) => void,
  ) {
    this.#session = remote.startSession(signal);
    this.#session.catch(fail);
  }

  /** An empty part at `offset`; waits while as many as may be are under way. */
  async newPart(offset: number, onBlock: (sha256: Buffer) => void): Promise<Part> {
    while (this.#underWay.size >= this.inFlightMax) await Promise.race(this.#underWay);
    const buffer = await this.buffers.take(() => this.#held.size, this.signal);
    const part = new Part(offset, buffer.length, buffer, onBlock);
    this.#held.add(part);
    return part;
  }

  /** Starts sending a part that is not the last one. */
  send(part: Part): void {
    const sending: Promise<void> = this.#append(part, false)
      .catch(this.fail)
      .finally(() => this.#underWay.delete(sending));
    this.#underWay.add(sending);
  }

  /** Sends the last part once all others have arrived, as it closes the session. Rejects with the first failure. */
  async close(last: Part): Promise<UploadSession> {
    await Promise.all(this.#underWay);
    this.signal.throwIfAborted();
    await this.#append(last, true);
    return await this.#session;
  }

  /** Ends the account of the buffers still lent. They are not used again: calls given up may still read them. */
  release(): void {
    for (const _part of this.#held) this.buffers.forget();
    this.#held.clear();
  }

  async #append(part: Part, last: boolean): Promise<void> {
    const { offset, bytes } = part;
    const contentHash = part.digest();
    await this.remote.appendSession(await this.#session, { offset, bytes, last, contentHash }, this.signal);
    if (this.#held.delete(part)) this.buffers.giveBack(part.buffer);
  }
}
