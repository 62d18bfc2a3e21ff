import type { IncomingHttpHeaders } from 'node:http';
import type { OnReadOpts, Socket } from 'node:net';
import { onAbort } from '../util/abort.ts';
import type { ByteSource } from '../util/byte-source.ts';
import { type Clock, elapsedMs } from '../util/clock.ts';
import { closedEarly, tooSlow } from './lost-connection.ts';

/** Bytes that are kept before they are asked for; beyond them the connection is paused. */
const QUEUED_BYTES_MAX = 512 * 1024;

/** Bytes for which a reader that asks for more waits, as long as each turn of the event loop brings some. */
const GATHERED_BYTES = 256 * 1024;

/** Minimum number of bytes of a body within its time limit. A slower one comes sooner over a new connection. */
const PROGRESS_BYTES_MIN = 16 * 1024;

/** Size of a buffer, in bytes: TLS brings at most 16 KiB at a time, a plain connection fills it. */
const BUFFER_BYTES = 64 * 1024;

/** Size of a piece from which on its buffer is reused, in bytes: the bytes of a long body come in such pieces. */
const PIECE_BYTES_MIN = 16 * 1024;

/** The connection that a body arrives on, as undici controls it. */
interface BodyConnection {
  pause(): void;
  resume(): void;
  /** Closes the connection. `HttpBody.end` follows. */
  abort(reason: Error): void;
}

interface BodyLimits {
  readonly clock: Clock;
  /** How long a reader tolerates almost no bytes, in ms. */
  readonly silenceMs: number;
}

/**
 * The body of an answer. TLS brings it in pieces of 16 KiB; they are gathered, because a promise for each would cost more
 * than the bytes. `add` and `end` are for the connection, all else is for the reader.
 */
export class HttpBody implements ByteSource {
  /** Bytes received before a reader asked for them. */
  readonly #queue: Buffer[] = [];
  #queuedBytes = 0;
  /** Buffer of the waiting reader, and the number of bytes in it. */
  #into: Buffer | undefined;
  #filledBytes = 0;
  #end: { readonly failure?: unknown } | undefined;
  #isPaused = false;
  #wake: (() => void) | undefined;
  #wantedBytes = 0;
  #isGathering = false;
  /** Waiting time since the last progress, in ms, and the bytes that came in it. */
  #waitedMs = 0;
  #waitedBytes = 0;
  readonly #endListeners: (() => void)[] = [];

  constructor(
    private readonly connection: BodyConnection,
    private readonly limits: BodyLimits,
  ) {}

  /** Adds a copy of the bytes that have come. */
  add(bytes: Buffer): void {
    const direct = this.#into ? this.#fill(this.#into, bytes) : 0;
    if (direct < bytes.length) {
      this.#queue.push(Buffer.from(bytes.subarray(direct)));
      this.#queuedBytes += bytes.length - direct;
    }
    if (this.#queuedBytes >= QUEUED_BYTES_MAX && !this.#isPaused) {
      this.#isPaused = true;
      this.connection.pause();
    }
    if (this.#wake) this.#gather();
  }

  /** Ends the body: it has come whole, or there was a `failure`. */
  end(end: { readonly failure?: unknown }): void {
    if (this.#end) return;
    this.#end = end;
    this.#wake?.();
    for (const listener of this.#endListeners) listener();
  }

  /** Calls `listener` when the body has been received whole, or its connection is closed. */
  onClose(listener: () => void): void {
    if (this.#end) listener();
    else this.#endListeners.push(listener);
  }

  /** Throws why the body ended early, after all bytes before; also when almost nothing came in the time limit. */
  async read(into: Buffer): Promise<number> {
    this.#filledBytes = 0;
    if (this.#queuedBytes > 0) this.#takeQueued(into);
    else {
      this.#into = into;
      await this.#arrival(Math.min(into.length, GATHERED_BYTES)).finally(() => {
        this.#into = undefined;
      });
    }
    return this.#filledBytes > 0 ? this.#filledBytes : this.#requireWhole();
  }

  /** Reads the rest of a body of at most `sizeBytesMax` bytes. Throws like `read`, or when there are more bytes. */
  async readRest(sizeBytesMax: number): Promise<Buffer> {
    const pieces: Buffer[] = [];
    let sizeBytes = 0;
    for (;;) {
      await this.#arrival(GATHERED_BYTES);
      if (this.#queuedBytes === 0) break;
      sizeBytes += this.#queuedBytes;
      if (sizeBytes > sizeBytesMax) throw new Error(`an answer over ${sizeBytesMax} bytes`);
      for (const piece of this.#queue.splice(0)) pieces.push(piece);
      this.#taken(this.#queuedBytes);
    }
    this.#requireWhole();
    return Buffer.concat(pieces, sizeBytes);
  }

  /** Closes the connection, unless the body has been received whole. */
  cancel(): void {
    if (!this.#end) this.connection.abort(closedEarly());
  }

  /** Returns 0 at the end of a whole body. */
  #requireWhole(): number {
    if (this.#end && 'failure' in this.#end) throw this.#end.failure;
    return 0;
  }

  /** Resolves when `bytes` have come, when a turn of the event loop brought none after the first, or at the end. */
  async #arrival(bytes: number): Promise<void> {
    const { clock, silenceMs } = this.limits;
    while (this.#comeBytes === 0 && !this.#end) {
      const since = clock.instant();
      this.#wantedBytes = bytes;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      this.#wake = undefined;
      this.#waitedMs += elapsedMs(clock, since);
      this.#waitedBytes += this.#comeBytes;
      if (this.#waitedBytes < PROGRESS_BYTES_MIN && this.#waitedMs >= silenceMs && !this.#end)
        throw tooSlow(this.#waitedBytes, this.#waitedMs);
      if (this.#waitedBytes < PROGRESS_BYTES_MIN) continue;
      this.#waitedMs = 0;
      this.#waitedBytes = 0;
    }
  }

  /** Number of bytes received for the waiting reader. */
  get #comeBytes(): number {
    return this.#queuedBytes + (this.#into ? this.#filledBytes : 0);
  }

  #gather(): void {
    if (this.#comeBytes >= this.#wantedBytes) this.#wake?.();
    else this.#gatherUntilNextTurn();
  }

  #gatherUntilNextTurn(): void {
    if (this.#isGathering) return;
    this.#isGathering = true;
    const before = this.#comeBytes;
    setImmediate(() => {
      this.#isGathering = false;
      if (this.#comeBytes > before) this.#gather();
      else if (this.#comeBytes > 0) this.#wake?.();
    });
  }

  #takeQueued(into: Buffer): void {
    for (let bytes = this.#queue.shift(); bytes; bytes = this.#queue.shift()) {
      const taken = this.#fill(into, bytes);
      if (taken < bytes.length) {
        this.#queue.unshift(bytes.subarray(taken));
        break;
      }
    }
    this.#taken(this.#filledBytes);
  }

  /** Returns how many of `bytes` there was room for. */
  #fill(into: Buffer, bytes: Buffer): number {
    const count = Math.min(bytes.length, into.length - this.#filledBytes);
    // Not `set`, which V8 does byte by byte for shared memory: 0.7 s a GiB in place of 0.1 s.
    if (count > 0) into.fill(bytes.subarray(0, count), this.#filledBytes, this.#filledBytes + count);
    this.#filledBytes += count;
    return count;
  }

  #taken(bytes: number): void {
    this.#queuedBytes -= bytes;
    if (this.#queuedBytes >= QUEUED_BYTES_MAX || !this.#isPaused) return;
    this.#isPaused = false;
    this.connection.resume();
  }
}

/** The head of an answer, and its body to be read. */
interface CallAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: HttpBody;
}

/**
 * One request, as the handler of undici's `dispatch`. undici's own `request` keeps the pieces of a body for later; here
 * `HttpBody` copies them at once, so that their memory can be reused (`ReceiveBuffers`).
 */
export class HttpCall {
  /** Resolves at the head of the answer. Rejects with undici's error or the signal's reason. */
  readonly answer: Promise<CallAnswer>;
  #resolve: (answer: CallAnswer) => void = () => {};
  #reject: (failure: unknown) => void = () => {};
  #connection: BodyConnection | undefined;
  #body: HttpBody | undefined;
  readonly #removeListener: () => void;

  /** `signal` aborts the call until its body has been received. `received` is told of all bytes of the body that come. */
  constructor(
    private readonly limits: BodyLimits,
    private readonly signal: AbortSignal,
    private readonly received: (bytes: number) => void,
  ) {
    this.answer = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    this.#removeListener = onAbort(signal, () => {
      this.#connection?.abort(signal.reason);
      this.#reject(signal.reason);
    });
  }

  onRequestStart(connection: BodyConnection): void {
    this.#connection = connection;
    if (this.signal.aborted) connection.abort(this.signal.reason);
  }

  onResponseStart(connection: BodyConnection, status: number, headers: IncomingHttpHeaders): void {
    // 103 and the like come before the answer.
    if (status < 200) return;
    this.#body = new HttpBody(connection, this.limits);
    this.#resolve({ status, headers, body: this.#body });
  }

  onResponseData(_connection: BodyConnection, bytes: Buffer): void {
    this.received(bytes.length);
    this.#body?.add(bytes);
  }

  onResponseEnd(): void {
    this.#removeListener();
    this.#body?.end({});
  }

  onResponseError(_connection: BodyConnection, failure: Error): void {
    this.#removeListener();
    this.#body?.end({ failure });
    this.#reject(failure);
  }
}

/**
 * The memory that a connection receives into: a few buffers in turns. Node would make a new one for each piece of 16 KiB,
 * and collecting this garbage takes as much time as receiving the bytes. A buffer is reused when the stream has nothing of
 * it any more, so its bytes must be copied as soon as they are read from the stream. undici keeps headers where they came
 * until their head is complete, so a buffer is reused only when more bytes than a head has have come after it.
 */
export class ReceiveBuffers implements OnReadOpts {
  /** The connection, set before it can receive. */
  socket: Socket | undefined;
  #current: Buffer = Buffer.allocUnsafeSlow(BUFFER_BYTES);
  /** Earlier buffers with pieces of at least `PIECE_BYTES_MIN`, oldest first. */
  readonly #used: Buffer[] = [];
  readonly #usedMin: number;
  #pieceBytes = 0;

  /** `headBytesMax`: maximum size of an answer's head. */
  constructor(headBytesMax: number) {
    this.#usedMin = Math.ceil(headBytesMax / PIECE_BYTES_MIN);
  }

  /** Returns the buffer for the next piece. */
  readonly buffer = (): Buffer => {
    if (this.#pieceBytes >= PIECE_BYTES_MIN) this.#used.push(this.#current);
    const oldest = this.#used.length > this.#usedMin ? this.#used.shift() : undefined;
    const areEarlierRead = (this.socket?.readableLength ?? 0) <= this.#pieceBytes;
    this.#current = (areEarlierRead ? oldest : undefined) ?? Buffer.allocUnsafeSlow(BUFFER_BYTES);
    return this.#current;
  };

  /** Takes the piece that has come. Returns whether the stream wants more. */
  readonly callback = (bytes: number): boolean => {
    this.#pieceBytes = bytes;
    return this.socket?.push(this.#current.subarray(0, bytes)) ?? false;
  };
}
