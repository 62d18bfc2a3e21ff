import { requestWithFile } from './file-request.ts';
import { t } from './messages.ts';
import { base } from './paths.ts';

/** Size of a part, in bytes: a proxy that keeps a request until all of it is there loses no more than this. */
const PART_BYTES = 16 * 1024 * 1024;

/** How many files are sent at the same time. */
const PARALLEL_MAX = 2;

/** Delays before a file whose connection broke is sent again, in ms. */
const RETRY_MS = [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 60_000];

/** Statuses after which another try may succeed. 412: somebody has just taken the name; 416: an answer was lost. */
const PASSING: ReadonlySet<number> = new Set([0, 412, 416, 429, 502, 503, 504]);

/** An answer other than success; the status is 0 without an answer. */
export class SendFailure extends Error {
  override readonly name = 'SendFailure';

  constructor(
    readonly status: number,
    /** How long to wait before another try, in seconds. */
    readonly waitSeconds = 0,
  ) {
    super(textOf(status));
  }
}

/** Returns what a sender should read about a status. */
function textOf(status: number): string {
  if (status === 0) return t('sendOffline');
  if (status === 403 || status === 423) return t('sendNotAllowed');
  if (status === 404) return t('linkGone');
  if (status === 413) return t('sendTooLarge');
  if (status === 422) return t('sendBadName');
  if (status === 507) return t('sendNoRoom');
  return t('sendLater');
}

/** What the gateway says about a link. */
export interface About {
  readonly needsPassword: boolean;
  readonly label?: string;
  readonly leftBytes?: number;
}

/** A file on its way. A change makes a new object. */
export interface Sending {
  readonly id: number;
  readonly name: string;
  readonly sizeBytes: number;
  readonly sentBytes: number;
  readonly state: 'waiting' | 'sending' | 'done' | 'failed';
  readonly failure?: string;
}

interface Job {
  sending: Sending;
  readonly file: File;
  /** The upload at the gateway, if it has begun. */
  upload: string | undefined;
  receivedBytes: number;
}

/** Sends files by an upload link. Calls `changed` with all of them at each change. */
export class Sender {
  #jobs: Job[] = [];
  #key = '';

  constructor(
    private readonly token: string,
    private readonly changed: (sendings: readonly Sending[]) => void,
  ) {}

  about(): Promise<About> {
    return this.#ask('GET', 'about');
  }

  /** Throws `SendFailure` 403 for a wrong password, and 429. */
  async unlock(password: string): Promise<void> {
    const { key } = await this.#ask<{ readonly key: string }>('POST', 'unlock', { password });
    this.#key = key;
  }

  add(files: readonly File[]): void {
    for (const file of files) {
      const { name, size } = file;
      const sending = {
        id: this.#jobs.length,
        name,
        sizeBytes: size,
        sentBytes: 0,
        state: 'waiting',
      } as const;
      this.#jobs.push({ sending, file, upload: undefined, receivedBytes: 0 });
    }
    this.#tell();
    this.#startNext();
  }

  retry(id: number): void {
    const job = this.#jobs[id];
    if (job) this.#set(job, { state: 'waiting' });
    this.#startNext();
  }

  #set(job: Job, change: Partial<Sending>): void {
    const { failure: _, ...before } = job.sending;
    job.sending = { ...before, ...change };
    this.#tell();
  }

  #tell(): void {
    this.changed(this.#jobs.map(({ sending }) => sending));
  }

  #startNext(): void {
    const running = this.#jobs.filter(({ sending }) => sending.state === 'sending').length;
    const waiting = this.#jobs.filter(({ sending }) => sending.state === 'waiting');
    for (const job of waiting.slice(0, Math.max(0, PARALLEL_MAX - running))) void this.#send(job);
  }

  async #send(job: Job): Promise<void> {
    this.#set(job, { state: 'sending' });
    try {
      await this.#sendPatiently(job);
      this.#set(job, { state: 'done', sentBytes: job.file.size });
    } catch (error) {
      const failure = error instanceof SendFailure ? error.message : t('unreadable');
      this.#set(job, { state: 'failed', failure, sentBytes: 0 });
    }
    this.#startNext();
  }

  async #sendPatiently(job: Job): Promise<void> {
    for (let breaks = 0; ; breaks++) {
      try {
        return await this.#sendOnce(job);
      } catch (error) {
        const waitMs = RETRY_MS[breaks];
        const isPassing = error instanceof SendFailure && PASSING.has(error.status);
        if (!isPassing || waitMs === undefined) throw error;
        await new Promise((resolve) => setTimeout(resolve, waitMs));
      }
    }
  }

  /** Sends the bytes that the gateway does not have. */
  async #sendOnce(job: Job): Promise<void> {
    const { file } = job;
    if (job.upload === undefined) await this.#begin(job);
    else if (await this.#isStored(job)) return;
    for (;;) {
      const offset = job.receivedBytes;
      const values = new URLSearchParams({ id: job.upload ?? '', offset: String(offset) });
      const answer = await requestWithFile({
        method: 'POST',
        address: `${addressOf('upload-part')}?${values}`,
        headers: { ...this.#headers, 'Content-Type': 'application/octet-stream' },
        body: file.slice(offset, offset + PART_BYTES),
        signal: new AbortController().signal,
        onSent: (bytes) => this.#set(job, { sentBytes: offset + bytes }),
      });
      if (answer.status !== 200) throw this.#failed(job, answer.status);
      if (this.#took(job, JSON.parse(answer.text))) return;
    }
  }

  async #begin(job: Job): Promise<void> {
    const { name, size, lastModified } = job.file;
    const modified = String(Math.floor(lastModified / 1000) * 1000);
    const values = { name, size: String(size), modified };
    job.upload = (await this.#ask<{ readonly id: string }>('POST', 'upload', values)).id;
    job.receivedBytes = 0;
  }

  async #isStored(job: Job): Promise<boolean> {
    try {
      return this.#took(job, await this.#ask('GET', `upload-state?id=${job.upload}`));
    } catch (error) {
      throw error instanceof SendFailure ? this.#failed(job, error.status) : error;
    }
  }

  #took(job: Job, { receivedBytes, isStored }: { receivedBytes: number; isStored: boolean }): boolean {
    job.receivedBytes = receivedBytes;
    return isStored;
  }

  /**
   * An upload that the drive has refused, or that was forgotten, is over; another try begins a new one. A link that has ended
   * answers 404 to that, too.
   */
  #failed(job: Job, status: number): SendFailure {
    if (status !== 0 && status !== 416) job.upload = undefined;
    return new SendFailure(status === 404 ? 0 : status);
  }

  get #headers(): Readonly<Record<string, string>> {
    return { 'X-Upload-Link': this.token, 'X-Upload-Key': this.#key };
  }

  async #ask<Answer>(
    method: 'GET' | 'POST',
    name: string,
    values?: Readonly<Record<string, string>>,
  ): Promise<Answer> {
    const headers = { ...this.#headers, ...(values && { 'Content-Type': 'application/json' }) };
    const body = values && JSON.stringify(values);
    const init = { method, headers, cache: 'no-store' as const, ...(body !== undefined && { body }) };
    const answer = await fetch(addressOf(name), init).catch(() => undefined);
    if (!answer) throw new SendFailure(0);
    if (answer.ok) return answer.json();
    throw new SendFailure(answer.status, Number(answer.headers.get('retry-after') ?? 0));
  }
}

function addressOf(name: string): string {
  return `${base}/.davgate/send/${name}`;
}
