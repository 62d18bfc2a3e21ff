import { DavFailure } from './dav.ts';
import { addressOfFunction, ask, call } from './gateway.ts';
import { sendFile } from './send-file.ts';

/** Size of a part, in bytes: a proxy that keeps a request until all of it is there loses no more than this. */
const PART_BYTES = 16 * 1024 * 1024;

/** What the gateway says about an upload. */
interface Progress {
  readonly receivedBytes: number;
  readonly isStored: boolean;
}

export interface SendOptions {
  readonly signal: AbortSignal;
  /** Called with the number of bytes that were sent. */
  readonly onSent: (bytes: number) => void;
}

/** Whether a file is so large that a lost connection must not cost all of it. */
export function isLarge(file: File): boolean {
  return file.size > PART_BYTES;
}

/** A large file that is sent in parts. After a lost connection it goes on where the gateway stopped receiving. */
export class UploadInParts {
  #id: string | undefined;
  /** Number of bytes that have certainly arrived. */
  receivedBytes = 0;

  constructor(private readonly file: File) {}

  /** Sends the missing bytes. Throws `DavFailure`; 0 and 404 mean that another call goes on. */
  async send(path: string, replaces: boolean, options: SendOptions): Promise<void> {
    let isStored = await this.#find(path, replaces);
    while (!isStored) isStored = await this.#sendPart(options);
  }

  /** Tells the gateway that the rest does not come. */
  giveUp(): void {
    const id = this.#id;
    this.#id = undefined;
    this.receivedBytes = 0;
    // Without an answer, the gateway gives the upload up by itself after some time.
    if (id !== undefined) call('end-upload', { id }).catch(() => undefined);
  }

  /** Asks how much has arrived, or begins. Returns whether the file is stored. */
  async #find(path: string, replaces: boolean): Promise<boolean> {
    if (this.#id !== undefined) {
      const { receivedBytes, isStored } = await this.#orForget(
        ask<Progress>('upload-state', { id: this.#id }),
      );
      this.receivedBytes = receivedBytes;
      return isStored;
    }
    const { size, lastModified } = this.file;
    const modified = String(Math.max(0, Math.floor(lastModified / 1000) * 1000));
    const wanted = { path, size: String(size), modified, replace: replaces ? 'yes' : 'no' };
    this.#id = (await call<{ readonly id: string }>('upload', wanted)).id;
    this.receivedBytes = 0;
    return false;
  }

  async #sendPart({ signal, onSent }: SendOptions): Promise<boolean> {
    const offset = this.receivedBytes;
    const answer = sendFile({
      method: 'POST',
      address: addressOfFunction('upload-part', { id: this.#id ?? '', offset: String(offset) }),
      headers: { 'Content-Type': 'application/octet-stream' },
      body: this.file.slice(offset, offset + PART_BYTES),
      signal,
      onSent: (bytes) => onSent(offset + bytes),
    });
    const { receivedBytes, isStored }: Progress = JSON.parse(await this.#orForget(answer));
    this.receivedBytes = receivedBytes;
    return isStored;
  }

  /** An upload that the drive has refused is over; another try begins a new one. */
  async #orForget<T>(answer: Promise<T>): Promise<T> {
    try {
      return await answer;
    } catch (error) {
      const status = error instanceof DavFailure ? error.status : undefined;
      // 416: other bytes are next, because the answer to these was lost.
      if (status === 416) throw new DavFailure(0, String(error));
      if (status !== 0 && status !== 401) {
        this.#id = undefined;
        this.receivedBytes = 0;
      }
      throw error;
    }
  }
}
