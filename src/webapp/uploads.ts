import { createFolder, DavFailure, reasonIn, send } from './dav.ts';
import { t } from './messages.ts';
import { addressOf, numbered, parentOf } from './paths.ts';
import { csrfHeader, renewSession } from './session.ts';

/** A file to be stored at `path`. */
export interface NewFile {
  readonly path: string;
  readonly file: File;
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
}

/** How many files are sent at the same time; the browser itself keeps six connections. */
const PARALLEL_MAX = 3;

/** Delays before a file whose connection broke is sent again, in ms. */
const RETRY_MS = [1_000, 2_000, 4_000, 8_000, 16_000];

interface Job {
  upload: Upload;
  readonly file: File;
  /** Whether a file at the path may be replaced. */
  replaces: boolean;
  /** Broken connections so far. */
  breaks: number;
  request?: XMLHttpRequest;
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
    this.#folders.set(root, Promise.resolve());
    for (const { path, file } of files) {
      const upload: Upload = {
        id: ++this.#lastId,
        path,
        sizeBytes: file.size,
        sentBytes: 0,
        state: 'waiting',
      };
      this.#jobs.push({ upload, file, replaces: false, breaks: 0 });
    }
    this.#tell();
    this.#startNext();
  }

  cancel(id: number): void {
    const job = this.#jobWith(id);
    if (!job) return;
    this.#set(job, { state: 'stopped' });
    job.request?.abort();
    this.#startNext();
  }

  retry(id: number): void {
    const job = this.#jobWith(id);
    if (!job) return;
    job.breaks = 0;
    this.#folders.clear();
    this.#set(job, { state: 'waiting', sentBytes: 0 });
    this.#startNext();
  }

  /** Settles an upload whose path is taken. */
  settle(id: number, how: 'replace' | 'keep-both'): void {
    const job = this.#jobWith(id);
    if (!job) return;
    job.replaces = how === 'replace';
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
    const { failure: _, ...before } = job.upload;
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
    this.#set(job, { state: 'sending' });
    const { path } = job.upload;
    try {
      await this.#folderAt(parentOf(path));
      if (isStopped(job)) return;
      const status = await this.#put(job);
      if (isStopped(job)) return;
      if (status === 412 && !(job.breaks > 0 && (await isStored(path, job.file))))
        this.#set(job, { state: 'exists' });
      else {
        this.#set(job, { state: 'done', sentBytes: job.file.size });
        this.stored(parentOf(path));
      }
    } catch (failure) {
      if (isStopped(job)) return;
      if (failure instanceof DavFailure && failure.status === 0) await this.#broke(job);
      else if (failure instanceof DavFailure && failure.status === 401) await this.#signedOut(job);
      else this.#set(job, { state: 'failed', failure: String((failure as Error).message) });
    } finally {
      this.#startNext();
    }
  }

  /** Waits before the next try, or gives up after the last one. */
  async #broke(job: Job): Promise<void> {
    const waitMs = RETRY_MS[job.breaks];
    job.breaks++;
    if (waitMs === undefined) return this.#set(job, { state: 'failed', failure: t('offline') });
    await new Promise((resolve) => setTimeout(resolve, waitMs));
    if (job.upload.state === 'sending') this.#set(job, { state: 'waiting', sentBytes: 0 });
  }

  /** Sends the file again when the person has signed in. */
  async #signedOut(job: Job): Promise<void> {
    try {
      if (job.breaks++ === RETRY_MS.length) throw new Error(t('signedOut'));
      await renewSession();
      if (!isStopped(job)) this.#set(job, { state: 'waiting', sentBytes: 0 });
    } catch (declined) {
      if (!isStopped(job)) this.#set(job, { state: 'failed', failure: String((declined as Error).message) });
    }
  }

  /** Resolves when the folder is there: created once for all files in it. */
  #folderAt(path: string): Promise<void> {
    const known = this.#folders.get(path);
    if (known !== undefined) return known;
    const made = this.#folderAt(parentOf(path)).then(() => createUnlessThere(path));
    this.#folders.set(path, made);
    made.catch(() => this.#folders.delete(path));
    return made;
  }

  /** Sends the file. Resolves with the status of success, or 412 if the path is taken. Throws `DavFailure`. */
  async #put(job: Job): Promise<number> {
    const request = new XMLHttpRequest();
    const token = await csrfHeader('PUT');
    if (isStopped(job)) throw new DavFailure(0, t('stopped'));
    job.request = request;
    request.open('PUT', addressOf(job.upload.path, 'file'));
    for (const [name, value] of Object.entries(token)) request.setRequestHeader(name, value);
    request.setRequestHeader('X-OC-Mtime', String(Math.floor(job.file.lastModified / 1000)));
    if (!job.replaces) request.setRequestHeader('If-None-Match', '*');
    request.upload.onprogress = ({ loaded }) => {
      if (job.upload.state === 'sending') this.#set(job, { sentBytes: loaded });
    };
    return new Promise((resolve, reject) => {
      request.onload = () => {
        const { status, responseText } = request;
        if (status < 300 || (status === 412 && !job.replaces)) resolve(status);
        else reject(new DavFailure(status, reasonIn(responseText, status)));
      };
      request.onerror = () => reject(new DavFailure(0, t('offline')));
      request.onabort = () => reject(new DavFailure(0, t('stopped')));
      request.send(job.file);
    });
  }
}

/** Whether an upload was cancelled, which can happen during each wait. */
function isStopped({ upload }: Job): boolean {
  return upload.state === 'stopped';
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
  return folder + numbered(stem + extension, Number(number) + 1);
}
