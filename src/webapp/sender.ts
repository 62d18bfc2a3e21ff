import { requestWithFile } from './file-request.ts';
import { t } from './messages.ts';
import { base } from './paths.ts';
import { Retries, TRANSIENT, waitSecondsIn, waitToRetry } from './retries.ts';
import { type PartRequests, UploadInParts } from './upload-parts.ts';

/** How many files are sent at the same time. */
const PARALLEL_MAX = 2;

/**
 * Statuses after which another try may succeed. 404: the gateway has forgotten the upload; 412: somebody has just taken the
 * name; 416: an answer was lost.
 */
const PASSING: ReadonlySet<number> = new Set([...TRANSIENT, 404, 412, 416]);

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
  if (status === 404 || status === 410) return t('linkGone');
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
  readonly parts: UploadInParts;
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
      this.#jobs.push({ sending, file, parts: new UploadInParts(file) });
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
    const retries = new Retries();
    for (;;) {
      try {
        return await job.parts.send(this.#requestsFor(job));
      } catch (error) {
        if (!(error instanceof SendFailure && PASSING.has(error.status))) throw error;
        const retry = retries.next(job.parts.receivedBytes);
        if (retry === undefined) throw error;
        await waitToRetry(retry, error.waitSeconds, window);
      }
    }
  }

  /** Returns the requests that send the file of a job in parts. */
  #requestsFor(job: Job): PartRequests {
    return {
      begin: (values) => this.#begin({ ...values, name: job.file.name }),
      state: (id) => this.#ask('GET', `upload-state?id=${id}`),
      part: async (id, offset, body) => {
        const values = new URLSearchParams({ id, offset: String(offset) });
        const { status, text, waitSeconds } = await requestWithFile({
          method: 'POST',
          address: `${addressOf('upload-part')}?${values}`,
          headers: { ...this.#headers, 'Content-Type': 'application/octet-stream' },
          body,
          signal: new AbortController().signal,
          onSent: (bytes) => this.#set(job, { sentBytes: offset + bytes }),
        });
        if (status !== 200) throw new SendFailure(status, waitSeconds);
        return JSON.parse(text);
      },
    };
  }

  /** Begins an upload. Throws `SendFailure` 410 when the link has ended. */
  async #begin(values: Readonly<Record<string, string>>): Promise<{ readonly id: string }> {
    try {
      return await this.#ask('POST', 'upload', values);
    } catch (error) {
      throw error instanceof SendFailure && error.status === 404 ? new SendFailure(410) : error;
    }
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
    throw new SendFailure(answer.status, waitSecondsIn(answer.headers.get('retry-after')));
  }
}

function addressOf(name: string): string {
  return `${base}/.davgate/send/${name}`;
}
