import { TRANSIENT } from './retries.ts';

/** Size of a part, in bytes: a proxy that keeps a request until all of it is there loses no more than this. */
const PART_BYTES = 16 * 1024 * 1024;

/** Statuses after which the gateway still has the upload. 401: the session has ended; 416: an answer was lost. */
const RESUMABLE: ReadonlySet<unknown> = new Set([...TRANSIENT, 401, 416]);

/** What the gateway says about an upload. */
interface Progress {
  readonly receivedBytes: number;
  readonly isStored: boolean;
}

/** The requests that send a file in parts. They reject with errors that have the `status` of the answer, 0 without one. */
export interface PartRequests {
  /** Begins an upload. `modified`: the file's time, in ms since 1970. */
  begin(values: { readonly size: string; readonly modified: string }): Promise<{ readonly id: string }>;
  state(id: string): Promise<Progress>;
  /** Sends the bytes from `offset` on. */
  part(id: string, offset: number, bytes: Blob): Promise<Progress>;
}

/** Whether a file is so large that a lost connection must not cost all of it. */
export function isLarge(file: File): boolean {
  return file.size > PART_BYTES;
}

/** A file that is sent in parts. A later try goes on where the gateway stopped receiving, unless the upload is over. */
export class UploadInParts {
  /** The upload that the gateway may still have. */
  id: string | undefined;
  /** Number of bytes that have certainly arrived. */
  receivedBytes = 0;

  constructor(private readonly file: File) {}

  /** Sends the missing bytes. Rejects with the error of a request; then another call goes on, or begins again. */
  async send(requests: PartRequests): Promise<void> {
    let isStored = false;
    if (this.id === undefined) this.id = await this.#begin(requests);
    else isStored = await this.#took(requests.state(this.id));
    while (!isStored) isStored = await this.#sendPart(requests);
  }

  async #begin(requests: PartRequests): Promise<string> {
    const { size, lastModified } = this.file;
    const modified = Math.max(0, Math.floor(lastModified / 1000) * 1000);
    return (await requests.begin({ size: String(size), modified: String(modified) })).id;
  }

  #sendPart(requests: PartRequests): Promise<boolean> {
    const offset = this.receivedBytes;
    return this.#took(requests.part(this.id ?? '', offset, this.file.slice(offset, offset + PART_BYTES)));
  }

  /** Returns whether the file is stored. */
  async #took(answer: Promise<Progress>): Promise<boolean> {
    try {
      const { receivedBytes, isStored } = await answer;
      this.receivedBytes = receivedBytes;
      return isStored;
    } catch (error) {
      const status = error instanceof Error && 'status' in error ? error.status : undefined;
      if (!RESUMABLE.has(status)) {
        this.id = undefined;
        this.receivedBytes = 0;
      }
      throw error;
    }
  }
}
