import { mkdir, open, opendir, rename, unlink } from 'node:fs/promises';
import { errorCodeOf } from '../../../util/error-code.ts';
import { syncDirectory } from '../../../util/sync-directory.ts';

/** The file system operations that the block store uses. Few, so that a test can make each of them fail. */
export interface Disk {
  makeFolder(path: string): Promise<void>;
  /** Creates an empty file. Fails if it exists. */
  create(path: string): Promise<DiskFile>;
  /** Returns a file's bytes from `start` on, at most `sizeBytes`, in `into` if given; fewer when the file is shorter. */
  read(path: string, sizeBytes: number, into?: Buffer, start?: number): Promise<Buffer>;
  rename(from: string, to: string): Promise<void>;
  /** Removes a file. Succeeds if there is none. */
  remove(path: string): Promise<void>;
  /** Makes creations, renames and removals in a folder durable. */
  syncFolder(path: string): Promise<void>;
  names(folder: string): AsyncIterable<string>;
}

/** A file open for writing. */
export interface DiskFile {
  append(chunks: readonly Uint8Array[]): Promise<void>;
  /** Makes the written bytes durable. */
  sync(): Promise<void>;
  close(): Promise<void>;
}

export const localDisk: Disk = {
  makeFolder: async (path) => {
    await mkdir(path, { recursive: true, mode: 0o700 });
  },
  create: async (path) => {
    const handle = await open(path, 'wx', 0o600);
    return {
      append: (chunks) => appendAll(handle, chunks),
      sync: () => handle.datasync(),
      close: () => handle.close(),
    };
  },
  // Not from Node's buffer pool by default: blocks are large and live on.
  read: async (path, sizeBytes, into = Buffer.allocUnsafeSlow(sizeBytes), start = 0) => {
    await using handle = await open(path, 'r');
    const bytes = into.subarray(0, sizeBytes);
    let filled = 0;
    while (filled < sizeBytes) {
      const { bytesRead } = await handle.read(bytes, filled, sizeBytes - filled, start + filled);
      if (bytesRead === 0) break;
      filled += bytesRead;
    }
    return bytes.subarray(0, filled);
  },
  rename,
  remove: async (path) => {
    try {
      await unlink(path);
    } catch (failure) {
      if (errorCodeOf(failure) !== 'ENOENT') throw failure;
    }
  },
  syncFolder: syncDirectory,
  names: async function* (folder) {
    for await (const item of await opendir(folder, { bufferSize: 1024 })) yield item.name;
  },
};

/** Writes all chunks. `writev` may write fewer bytes than given, for example on a nearly full disk. */
async function appendAll(
  handle: Awaited<ReturnType<typeof open>>,
  chunks: readonly Uint8Array[],
): Promise<void> {
  let rest = chunks.filter((chunk) => chunk.length > 0);
  while (rest.length > 0) {
    let { bytesWritten } = await handle.writev(rest);
    const unwritten: Uint8Array[] = [];
    for (const chunk of rest) {
      if (bytesWritten < chunk.length) unwritten.push(chunk.subarray(bytesWritten));
      bytesWritten = Math.max(0, bytesWritten - chunk.length);
    }
    rest = unwritten;
  }
}
