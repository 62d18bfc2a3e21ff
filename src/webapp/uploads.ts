import { numberedName } from '../util/file-name.ts';
import { createFolder, DavFailure, send } from './dav.ts';
import { failureText } from './folder.ts';
import { addressOfFunction, ask, call } from './gateway.ts';
import { t } from './messages.ts';
import { addressOf, parentOf } from './paths.ts';
import { Retries, TRANSIENT, waitToRetry } from './retries.ts';
import { sendFile } from './send-file.ts';
import { renewSession } from './session.ts';
import { isLarge, type PartRequests, UploadInParts } from './upload-parts.ts';

/** A file to be stored at `path`. */
export interface NewFile {
  readonly path: string;
  /** `undefined` for what the browser cannot read. */
  readonly file: File | undefined;
}

export type UploadState = 'waiting' | 'sending' | 'exists' | 'done' | 'failed' | 'stopped';

/** One file on its way to the drive. A change makes a new object. */
export interface Upload {
  readonly id: number;
  readonly path: string;
  readonly sizeBytes: number;
  readonly sentBytes: number;
  readonly state: UploadState;
  /** Why it failed, for a person. */
  readonly failure?: string;
  /** Whether it waits for the connection, or for a drive that is busy. */
  readonly isReconnecting?: boolean;
}

/** How many files are sent at the same time; the browser itself keeps six connections. */
const PARALLEL_MAX = 3;

/** Statuses after which another try may succeed. 404: the gateway has forgotten the upload; 416: an answer was lost. */
const PASSING: ReadonlySet<number> = new Set([...TRANSIENT, 404, 416]);

interface Job {
  upload: Upload;
  readonly file: File | undefined;
  /** Whether a file at the path may be replaced. */
  replaces: boolean;
  retries: Retries;
  /** Whether its folder, which had been there, was made again. */
  madeFolders: boolean;
  /** Present for a large file. */
  parts: UploadInParts | undefined;
  /** Aborted when the upload is cancelled. Each try has its own: the state may already be that of the next one. */
  stop: AbortController;
}

/** The uploads of this page. Calls `changed` with all of them at each change, and `stored` with the folder of a new file. */
export class Uploads {
  #jobs: Job[] = [];
  #lastId = 0;
  /** Folders that are there, or that somebody is making. */
  readonly #folders = new Map<string, Promise<void>>();

  constructor(
    private readonly changed: (uploads: readonly Upload[]) => void,
    private readonly stored: (folder: string) => void,
  ) {}

  /** Uploads files. Folders between `root`, which exists, and a file are created. */
  add(files: readonly NewFile[], root: string): void {
    // The folders of earlier files may have been deleted since.
    if (!this.#jobs.some(({ upload }) => isOpen(upload))) this.#folders.clear();
    this.#folders.set(root, Promise.resolve());
    for (const { path, file } of files) {
      const sizeBytes = file?.size ?? 0;
      const upload: Upload = { id: ++this.#lastId, path, sizeBytes, sentBytes: 0, state: 'waiting' };
      const stop = new AbortController();
      this.#jobs.push({
        upload,
        file,
        replaces: false,
        retries: new Retries(),
        madeFolders: false,
        parts: partsOf(file),
        stop,
      });
    }
    this.#tell();
    this.#startNext();
  }

  cancel(id: number): void {
    const job = this.#jobWith(id);
    if (!job) return;
    this.#set(job, { state: 'stopped' });
    job.stop.abort();
    if (job.parts?.id !== undefined) giveUp(job.parts.id);
    // A late answer to the cancelled try changes only the old object.
    job.parts = partsOf(job.file);
    this.#startNext();
  }

  retry(id: number): void {
    const job = this.#jobWith(id);
    if (!job) return;
    job.retries = new Retries();
    job.madeFolders = false;
    this.#folders.clear();
    this.#set(job, { state: 'waiting', sentBytes: arrivedBytes(job) });
    this.#startNext();
  }

  /** Settles an upload whose path is taken. */
  settle(id: number, how: 'replace' | 'keep-both'): void {
    const job = this.#jobWith(id);
    if (!job) return;
    job.replaces = how === 'replace';
    job.retries = new Retries();
    const path = how === 'replace' ? job.upload.path : nextNumbered(job.upload.path);
    this.#set(job, { state: 'waiting', sentBytes: 0, path });
    this.#startNext();
  }

  /** Forgets the uploads that have ended. */
  clear(): void {
    this.#jobs = this.#jobs.filter(({ upload }) => isOpen(upload));
    this.#tell();
  }

  #jobWith(id: number): Job | undefined {
    return this.#jobs.find(({ upload }) => upload.id === id);
  }

  #set(job: Job, change: Partial<Omit<Upload, 'id'>>): void {
    const { failure: _, isReconnecting: __, ...before } = job.upload;
    job.upload = { ...before, ...change };
    this.#tell();
  }

  #tell(): void {
    this.changed(this.#jobs.map(({ upload }) => upload));
  }

  #startNext(): void {
    const sending = this.#jobs.filter(({ upload }) => upload.state === 'sending').length;
    const waiting = this.#jobs.filter(({ upload }) => upload.state === 'waiting');
    for (const job of waiting.slice(0, Math.max(0, PARALLEL_MAX - sending))) void this.#send(job);
  }

  async #send(job: Job): Promise<void> {
    job.stop = new AbortController();
    const { signal } = job.stop;
    this.#set(job, { state: 'sending' });
    const { file } = job;
    const { path } = job.upload;
    try {
      if (!file) throw new Error(t('unreadable'));
      await this.#folderAt(parentOf(path));
      if (signal.aborted) return;
      const isTaken = await this.#put(job, file);
      const isOther = isTaken && !(job.retries.count > 0 && (await isStored(path, file)));
      if (signal.aborted) return;
      if (isOther) this.#set(job, { state: 'exists' });
      else {
        this.#set(job, { state: 'done', sentBytes: file.size });
        this.stored(parentOf(path));
      }
    } catch (failure) {
      if (signal.aborted) return;
      if (failure instanceof DavFailure && PASSING.has(failure.status)) await this.#broke(job, failure);
      else if (failure instanceof DavFailure && failure.status === 401) await this.#signedOut(job);
      else if (failure instanceof DavFailure && failure.status === 409 && !job.madeFolders)
        this.#makeFoldersAgain(job);
      else this.#set(job, { state: 'failed', failure: failureText(failure) });
    } finally {
      // Not at once: a file that fails before the first wait would be within the loop that starts the others.
      queueMicrotask(() => this.#startNext());
    }
  }

  /** Somebody has deleted or renamed the folder since its last file. */
  #makeFoldersAgain(job: Job): void {
    job.madeFolders = true;
    this.#folders.clear();
    this.#set(job, { state: 'waiting', sentBytes: 0 });
  }

  /** Waits before the next try, or gives up after the last one. */
  async #broke(job: Job, { status, message, waitSeconds }: DavFailure): Promise<void> {
    const failure = status === 0 ? t('offline') : message;
    const retry = job.retries.next(arrivedBytes(job));
    if (retry === undefined) return this.#set(job, { state: 'failed', failure });
    const { signal } = job.stop;
    const canRead = job.file !== undefined && (await isReadable(job.file));
    if (signal.aborted) return;
    if (!canRead) return this.#set(job, { state: 'failed', failure: t('unreadable') });
    this.#set(job, { isReconnecting: true });
    await waitToRetry(retry, waitSeconds, window);
    if (!signal.aborted) this.#set(job, { state: 'waiting', sentBytes: arrivedBytes(job) });
  }

  /** Sends the file again when the person has signed in. */
  async #signedOut(job: Job): Promise<void> {
    const { signal } = job.stop;
    try {
      if (job.retries.next(arrivedBytes(job)) === undefined) throw new Error(t('signedOut'));
      await renewSession();
      if (!signal.aborted) this.#set(job, { state: 'waiting', sentBytes: arrivedBytes(job) });
    } catch (declined) {
      if (!signal.aborted) this.#set(job, { state: 'failed', failure: String((declined as Error).message) });
    }
  }

  /** Resolves when the folder is there: created once for all files in it. */
  #folderAt(path: string): Promise<void> {
    const known = path === '/' ? Promise.resolve() : this.#folders.get(path);
    if (known !== undefined) return known;
    const made = this.#folderAt(parentOf(path)).then(() => createUnlessThere(path));
    this.#folders.set(path, made);
    made.catch(() => this.#folders.delete(path));
    return made;
  }

  /** Sends the file. Resolves with whether the path is taken. Throws `DavFailure`. */
  async #put(job: Job, file: File): Promise<boolean> {
    const { upload, replaces, parts } = job;
    const { signal } = job.stop;
    const onSent = (sentBytes: number) => {
      if (!signal.aborted) this.#set(job, { sentBytes });
    };
    const headers = {
      'X-OC-Mtime': String(Math.floor(file.lastModified / 1000)),
      ...(!replaces && { 'If-None-Match': '*' }),
    };
    try {
      if (parts) await parts.send(partRequests(job, onSent));
      else {
        const address = addressOf(upload.path, 'file');
        await sendFile({ method: 'PUT', address, headers, body: file, signal, onSent });
      }
      return false;
    } catch (error) {
      if (error instanceof DavFailure && error.status === 412 && !replaces) return true;
      throw error;
    }
  }
}

/** Returns the requests that send the file of a job in parts. */
function partRequests({ upload, replaces, stop }: Job, onSent: (bytes: number) => void): PartRequests {
  return {
    begin: async (values) => {
      const target = { path: upload.path, replace: replaces ? 'yes' : 'no' };
      const begun = await call<{ readonly id: string }>('upload', { ...values, ...target });
      if (stop.signal.aborted) giveUp(begun.id);
      return begun;
    },
    state: (id) => ask('upload-state', { id }),
    part: async (id, offset, body) => {
      const text = await sendFile({
        method: 'POST',
        address: addressOfFunction('upload-part', { id, offset: String(offset) }),
        headers: { 'Content-Type': 'application/octet-stream' },
        body,
        signal: stop.signal,
        onSent: (bytes) => onSent(offset + bytes),
      });
      return JSON.parse(text);
    },
  };
}

function partsOf(file: File | undefined): UploadInParts | undefined {
  return file && isLarge(file) ? new UploadInParts(file) : undefined;
}

/** Ends an upload at the gateway, which without this call ends it by itself after some time. */
function giveUp(id: string): void {
  call('end-upload', { id }).catch(() => undefined);
}

/** Number of bytes that need not be sent again. */
function arrivedBytes({ parts }: Job): number {
  return parts?.receivedBytes ?? 0;
}

/** Whether the file is still there and unchanged: a browser refuses to read it otherwise. */
function isReadable(file: File): Promise<boolean> {
  return file
    .slice(0, 1)
    .arrayBuffer()
    .then(
      () => true,
      () => false,
    );
}

/** Whether an upload has not ended. */
export function isOpen({ state }: Upload): boolean {
  return state === 'waiting' || state === 'sending' || state === 'exists';
}

/** Whether the file at `path` is `file`: an earlier try has stored it, and only its answer was lost. */
async function isStored(path: string, file: File): Promise<boolean> {
  const answer = await send('HEAD', addressOf(path, 'file'), { cache: 'no-store' });
  const modifiedMs = Date.parse(answer.headers.get('last-modified') ?? '');
  return (
    Number(answer.headers.get('content-length')) === file.size &&
    Math.floor(modifiedMs / 1000) === Math.floor(file.lastModified / 1000)
  );
}

async function createUnlessThere(path: string): Promise<void> {
  try {
    await createFolder(path);
  } catch (failure) {
    // 405: something is there. If it is a file, the upload fails with its own reason.
    if (!(failure instanceof DavFailure && failure.status === 405)) throw failure;
  }
}

/** Returns the path with the next number: `a (2).txt` after `a.txt`, `a (3).txt` after that. */
function nextNumbered(path: string): string {
  const [, folder = '', stem = '', number = '1', extension = ''] =
    /^(.*\/)(.+?)(?: \((\d+)\))?(\.[^./]*)?$/.exec(path) ?? [];
  return folder + numberedName(stem + extension, Number(number) + 1);
}
