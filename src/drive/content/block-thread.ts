import { Worker } from 'node:worker_threads';
import { programUrl } from '../../util/package.ts';

/** A block to be written to the disk. */
export interface BlockToWrite {
  readonly name: string;
  /** The file's path. */
  readonly path: string;
  /** Folder on the same disk for files that are not whole yet. */
  readonly incoming: string;
  readonly bytes: Uint8Array;
}

/** What the thread is sent. */
export interface WriteJob extends BlockToWrite {
  readonly id: number;
}

/** The thread's answer: the length of the file, or why it could not be written. */
export type WriteResult =
  | { readonly id: number; readonly fileBytes: number }
  | {
      readonly id: number;
      readonly failure: { readonly code: string | undefined; readonly message: string };
    };

interface Waiting {
  readonly resolve: (fileBytes: number) => void;
  readonly reject: (failure: unknown) => void;
}

/** Maximum size of the thread's heap for new objects, in MB: it makes few. */
const NEW_OBJECTS_MB = 1;

/**
 * Writes blocks in a thread of its own: checksums and six steps of the disk for each block, which would wait for a busy
 * event loop one by one. The thread is started with the first block, and again after it has broken.
 */
export class BlockThread {
  readonly #waiting = new Map<number, Waiting>();
  #worker: Worker | undefined;
  #lastId = 0;

  /** `program`: the compiled `block-file-thread.js`. */
  constructor(private readonly program = programUrl('drive/content/block-file-thread.js')) {}

  /** Returns the length of the file. Throws why it was not written. The bytes must not change meanwhile. */
  async write(block: BlockToWrite): Promise<number> {
    this.#worker ??= this.#start();
    const worker = this.#worker;
    const id = ++this.#lastId;
    const { bytes } = block;
    if (bytes.buffer instanceof SharedArrayBuffer) worker.postMessage({ ...block, id });
    else {
      // A view would be sent with all of its buffer.
      const copy = new Uint8Array(bytes);
      worker.postMessage({ ...block, bytes: copy, id }, [copy.buffer]);
    }
    worker.ref();
    return await new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject }));
  }

  async close(): Promise<void> {
    await this.#worker?.terminate();
  }

  #start(): Worker {
    const resourceLimits = { maxYoungGenerationSizeMb: NEW_OBJECTS_MB };
    const worker = new Worker(this.program, { resourceLimits });
    worker.on('message', (result: WriteResult) => this.#finish(result));
    worker.on('error', (error) => this.#broke(worker, error));
    worker.on('exit', () => this.#broke(worker, new Error('the thread has ended')));
    return worker;
  }

  #finish(result: WriteResult): void {
    const waiting = this.#waiting.get(result.id);
    this.#waiting.delete(result.id);
    // A thread without work must not keep the process alive.
    if (this.#waiting.size === 0) this.#worker?.unref();
    if ('fileBytes' in result) waiting?.resolve(result.fileBytes);
    else waiting?.reject(Object.assign(new Error(result.failure.message), { code: result.failure.code }));
  }

  #broke(worker: Worker, error: Error): void {
    if (this.#worker !== worker) return;
    this.#worker = undefined;
    for (const { reject } of this.#waiting.values()) reject(error);
    this.#waiting.clear();
  }
}
