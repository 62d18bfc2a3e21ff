import type { Readable } from 'node:stream';
import type { ByteSource } from '../util/byte-source.ts';
import { type Clock, elapsedMs } from '../util/clock.ts';
import { closedEarly, tooSlow } from './lost-connection.ts';

/** Bytes that are received before they are asked for; beyond them the connection is paused. */
const QUEUED_BYTES_MAX = 512 * 1024;

/** Bytes for which a reader that asks for more waits, as long as each turn of the event loop brings some. */
const GATHERED_BYTES = 256 * 1024;

/** Minimum number of bytes of a body within its time limit. A slower one comes sooner over a new connection. */
export const PROGRESS_BYTES_MIN = 16 * 1024;

/**
 * The body of a download, copied into the reader's buffers. TLS brings it in pieces of 16 KiB; they are gathered, because
 * a promise for each would cost more than the bytes.
 */
export class HttpBody implements ByteSource {
  readonly #body: Readable;
  readonly #clock: Clock;
  readonly #silenceMs: number;
  readonly #queue: Uint8Array[] = [];
  #queuedBytes = 0;
  #end: { readonly failure?: unknown } | undefined;
  #wake: (() => void) | undefined;
  #wantedBytes = 0;
  #isGathering = false;
  /** Waiting time since the last progress, in ms, and the bytes that came in it. */
  #waitedMs = 0;
  #waitedBytes = 0;

  /** Throws from `read` when almost nothing came in `silenceMs` of waiting. `received` is told of all bytes that come. */
  constructor(
    body: Readable,
    limits: { readonly clock: Clock; readonly silenceMs: number; readonly received: (bytes: number) => void },
  ) {
    this.#body = body;
    this.#clock = limits.clock;
    this.#silenceMs = limits.silenceMs;
    body.on('data', (chunk: Uint8Array) => {
      limits.received(chunk.length);
      this.#add(chunk);
    });
    body.once('end', () => this.#finish({}));
    body.on('error', (failure) => this.#finish({ failure }));
    body.once('close', () => {
      if (!this.#end) this.#finish({ failure: closedEarly() });
    });
  }

  /** Calls `listener` when the body has been received whole, or its connection is closed. */
  onClose(listener: () => void): void {
    if (this.#body.closed) listener();
    else this.#body.once('close', listener);
  }

  /** Throws why the body ended early, after all bytes before. */
  async read(into: Uint8Array): Promise<number> {
    const hasBytes = await this.#hasBytes(Math.min(into.length, GATHERED_BYTES));
    return hasBytes ? this.#take(into) : 0;
  }

  /** Closes the connection, unless the body has been received whole. */
  cancel(): void {
    this.#body.destroy();
  }

  #add(chunk: Uint8Array): void {
    if (chunk.length === 0) return;
    this.#queue.push(chunk);
    this.#queuedBytes += chunk.length;
    if (this.#queuedBytes >= QUEUED_BYTES_MAX) this.#body.pause();
    if (this.#wake) this.#gather();
  }

  #finish(end: { readonly failure?: unknown }): void {
    this.#end ??= end;
    this.#wake?.();
  }

  /** Waits for bytes, if none are there. Returns whether there are some; `false` at the end. */
  async #hasBytes(wantedBytes: number): Promise<boolean> {
    while (this.#queuedBytes === 0 && !this.#end) await this.#arrival(wantedBytes);
    if (this.#queuedBytes > 0) return true;
    if (this.#end && 'failure' in this.#end) throw this.#end.failure;
    return false;
  }

  /** Resolves when `bytes` have come, when a turn of the event loop brought none after the first, or at the end. */
  async #arrival(bytes: number): Promise<void> {
    const since = this.#clock.instant();
    this.#wantedBytes = bytes;
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
    });
    this.#wake = undefined;
    this.#waitedMs += elapsedMs(this.#clock, since);
    this.#waitedBytes += this.#queuedBytes;
    if (this.#waitedBytes < PROGRESS_BYTES_MIN && this.#waitedMs >= this.#silenceMs && !this.#end)
      throw tooSlow(this.#waitedBytes, this.#waitedMs);
    if (this.#waitedBytes < PROGRESS_BYTES_MIN) return;
    this.#waitedMs = 0;
    this.#waitedBytes = 0;
  }

  #gather(): void {
    if (this.#queuedBytes >= this.#wantedBytes) this.#wake?.();
    else this.#gatherUntilNextTurn();
  }

  #gatherUntilNextTurn(): void {
    if (this.#isGathering) return;
    this.#isGathering = true;
    const before = this.#queuedBytes;
    setImmediate(() => {
      this.#isGathering = false;
      if (this.#queuedBytes > before) this.#gather();
      else if (this.#queuedBytes > 0) this.#wake?.();
    });
  }

  #take(into: Uint8Array): number {
    let filled = 0;
    while (filled < into.length) {
      const chunk = this.#queue.shift();
      if (!chunk) break;
      const part = chunk.subarray(0, into.length - filled);
      into.set(part, filled);
      filled += part.length;
      if (part.length < chunk.length) this.#queue.unshift(chunk.subarray(part.length));
    }
    this.#taken(filled);
    return filled;
  }

  #taken(bytes: number): void {
    this.#queuedBytes -= bytes;
    if (this.#queuedBytes < QUEUED_BYTES_MAX && this.#body.isPaused()) this.#body.resume();
  }
}
