import { randomUUID } from 'node:crypto';
import { DavError } from '../dav/errors.ts';
import { FileError } from '../drive/errors.ts';
import { BodyReader, linkedSignal, onAbort } from '../util/abort.ts';
import type { Clock } from '../util/clock.ts';
import { waitAtMost } from '../util/wait.ts';
import { PushedBody } from './pushed-body.ts';

/** How long an upload waits for its next part, and how long its outcome is kept for a page that asks, in ms. */
const IDLE_MS = 15 * 60_000;

/** How long the answer to a new upload waits for the drive to refuse it or to take its first bytes, in ms. */
const START_MS = 5_000;

/** Maximum numbers of uploads. */
export interface UploadLimits {
  /** Unfinished ones of one user: each keeps a part of its file in memory. */
  readonly ofUser: number;
  /** Unfinished ones of all users. */
  readonly unfinished: number;
  /** Ended ones of all users, whose outcome is kept. */
  readonly ended: number;
}

const LIMITS: UploadLimits = { ofUser: 10, unfinished: 200, ended: 2_000 };

/** What a page learns about an upload. */
export interface Progress {
  readonly receivedBytes: number;
  /** Whether the file is stored. */
  readonly isStored: boolean;
}

export interface UploadOptions {
  /** The user who may send the parts. */
  readonly user: string;
  /** The rights of the user at the beginning. */
  readonly rights: string;
  readonly sizeBytes: number;
  readonly clock: Clock;
  /** Stores the file, whose body ends with an error unless it arrives whole. */
  readonly store: (body: AsyncIterable<Uint8Array>, signal: AbortSignal) => Promise<unknown>;
  /** Called once, when its outcome need not be kept any more. */
  readonly forget: (upload: Upload) => void;
}

/** A file that is being stored while its bytes arrive part by part, each by a request of its own. */
export class Upload {
  readonly id = randomUUID();
  readonly #body = new PushedBody();
  readonly #stop = new AbortController();
  /** Aborted when the file is stored or refused. */
  readonly #over = new AbortController();
  readonly #outcome: Promise<unknown>;
  /** The part that is being received. */
  #part: Part | undefined;
  #idle = new AbortController();

  constructor(private readonly options: UploadOptions) {
    if (options.sizeBytes === 0) this.#body.complete();
    this.#outcome = options.store(this.#body, this.#stop.signal);
    const end = () => {
      this.#over.abort(new Error('the upload has ended'));
      this.#expireLater();
    };
    this.#outcome.then(end, (error) => {
      this.#body.fail(error);
      end();
    });
    this.#expireLater();
  }

  get user(): string {
    return this.options.user;
  }

  get rights(): string {
    return this.options.rights;
  }

  get isOver(): boolean {
    return this.#over.signal.aborted;
  }

  /** Resolves when the drive reads the body, or may yet; rejects when it has refused the file. */
  async started(): Promise<void> {
    const first = Promise.race([this.#outcome, this.#body.isRead]);
    await waitAtMost(this.options.clock, START_MS, first, () => undefined);
  }

  /** Gives up its outcome. */
  forget(): void {
    this.#idle.abort();
    this.options.forget(this);
  }

  /** Stores nothing, unless all bytes have arrived. */
  fail(error: unknown): void {
    if (this.#body.isComplete) return;
    this.#body.fail(error);
    this.#stop.abort(error);
  }

  /** Ends the part that is being received. Once all bytes have arrived, waits until the file is stored. */
  async progress(): Promise<Progress> {
    await this.#endPart();
    this.#expireLater();
    if (!this.isOver && !this.#body.isComplete)
      return { receivedBytes: this.#body.receivedBytes, isStored: false };
    await this.#outcome;
    return { receivedBytes: this.options.sizeBytes, isStored: true };
  }

  /**
   * Receives the bytes from `offset` on, in place of a part whose lost connection is still open here. Throws
   * `DavError` 416 when other bytes are next, and the drive's refusal of the file.
   */
  async receive(bytes: AsyncIterable<Uint8Array>, offset: number, gone: AbortSignal): Promise<Progress> {
    while (this.#part) await this.#endPart();
    if (this.isOver) return this.progress();
    const nextByte = this.#body.receivedBytes;
    if (offset !== nextByte)
      throw new DavError(416, `byte ${nextByte} of the upload is next, not byte ${offset}`);
    const part = new Part();
    this.#part = part;
    try {
      await this.#receive(bytes, linkedSignal(part.stop.signal, gone, this.#over.signal));
    } catch (error) {
      // Why the drive has refused the file says more.
      if (this.isOver) await this.#outcome;
      throw error;
    } finally {
      part.end();
      if (this.#part === part) this.#part = undefined;
      this.#expireLater();
    }
    return this.progress();
  }

  async #receive(
    bytes: AsyncIterable<Uint8Array>,
    { signal, release }: ReturnType<typeof linkedSignal>,
  ): Promise<void> {
    const { sizeBytes } = this.options;
    const reader = new BodyReader(bytes, signal);
    try {
      for (let piece = await reader.next(); piece; piece = await reader.next()) {
        if (this.#body.receivedBytes + piece.length > sizeBytes)
          throw new DavError(400, `more bytes came than the ${sizeBytes} that were announced`);
        await this.#body.push(piece, signal);
      }
      if (this.#body.receivedBytes === sizeBytes) this.#body.complete();
    } finally {
      reader.close();
      release();
    }
  }

  async #endPart(): Promise<void> {
    const part = this.#part;
    part?.stop.abort(new DavError(416, 'the upload goes on by another request'));
    await part?.ended;
  }

  /** Gives the upload up, or its outcome, unless a request concerns it in time. */
  #expireLater(): void {
    this.#idle.abort();
    this.#idle = new AbortController();
    const expire = () => {
      if (this.isOver) this.forget();
      else if (!this.#part) this.fail(new FileError('incomplete', 'the rest of the upload did not arrive'));
    };
    this.options.clock.sleep(IDLE_MS, this.#idle.signal).then(expire, () => undefined);
  }
}

/** A part that is being received. */
class Part {
  readonly stop = new AbortController();
  readonly ended: Promise<void>;
  end: () => void = () => undefined;

  constructor() {
    this.ended = new Promise((resolve) => {
      this.end = resolve;
    });
  }
}

/** The uploads of all users: those that have begun, and for some minutes the last ones that have ended. */
export class Uploads {
  readonly #byId = new Map<string, Upload>();

  constructor(private readonly limits = LIMITS) {}

  /** Begins an upload, which `closing` ends. Throws `DavError` 503 when there are too many. */
  begin(options: Omit<UploadOptions, 'forget'>, closing: AbortSignal): Upload {
    const { user } = options;
    const { limits } = this;
    const all = [...this.#byId.values()];
    const [oldest, ...ended] = all.filter(({ isOver }) => isOver);
    if (oldest && ended.length >= limits.ended) oldest.forget();
    const unfinished = all.filter(({ isOver }) => !isOver);
    const own = unfinished.filter((each) => each.user === user);
    if (own.length >= limits.ofUser || unfinished.length >= limits.unfinished)
      throw new DavError(503, 'too many unfinished uploads; try again when some have ended', {
        headers: { 'Retry-After': 30 },
      });
    let stopListening = () => {};
    const forget = ({ id }: Upload) => {
      stopListening();
      this.#byId.delete(id);
    };
    const made = new Upload({ ...options, forget });
    stopListening = onAbort(closing, () => made.fail(new FileError('offline', 'davgate is being stopped')));
    this.#byId.set(made.id, made);
    return made;
  }

  get(id: string): Upload | undefined {
    return this.#byId.get(id);
  }
}
