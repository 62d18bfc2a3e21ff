import { ApiRefusal, failure } from '../api/failures.ts';
import type { ApiCaller, Content, DownloadCall } from '../api/route.ts';
import { StorageError, type Stored, type StoredDeletion, type StoredFile } from '../storage/storage.ts';
import { namesRev, singleRange } from './requested-part.ts';

/** A file, and the namespace in which its bytes are read. */
export interface ReadableFile {
  readonly namespace: string;
  readonly file: StoredFile;
}

/** Returns the answer to a download of `file`: all of it, the requested range, or that the client's copy is current. */
export function fileContent(
  { storage, range, ifNoneMatch }: DownloadCall<ApiCaller | undefined>,
  { namespace, file }: ReadableFile,
  result: object,
): Content {
  const content = { rev: file.rev, sizeBytes: file.sizeBytes, result };
  if (namesRev(ifNoneMatch, file.rev)) return { ...content, range: 'not-modified', bytes: nothing() };
  const wanted = singleRange(range, file.sizeBytes);
  if (wanted === 'unsatisfiable') throw unsatisfiable(file.sizeBytes);
  return { ...content, range: wanted, bytes: storage.read(namespace, file, wanted, { lent: true }) };
}

/**
 * Returns the refusal of a range. Its tag is in no published union; the official transfer helpers look for it in the
 * summary.
 */
function unsatisfiable(sizeBytes: number): ApiRefusal {
  const value = { tags: ['range', 'not_satisfiable'], value: failure('other').value };
  return new ApiRefusal(416, value, { 'content-range': `bytes */${sizeBytes}` });
}

async function* nothing(): AsyncGenerator<Uint8Array> {}

/**
 * Reads the first chunk, so that an immediate failure can still be answered with a status. The caller must read the
 * result to its end or return its iterator.
 */
export async function withFirstChunk(bytes: AsyncIterable<Uint8Array>): Promise<AsyncIterable<Uint8Array>> {
  const iterator = bytes[Symbol.asyncIterator]();
  const read: IteratorResult<Uint8Array>[] = [await iterator.next()];
  return {
    [Symbol.asyncIterator]: () => ({
      next: async () => read.shift() ?? (await iterator.next()),
      return: async () => {
        await iterator.return?.();
        return { done: true, value: undefined };
      },
    }),
  };
}

/**
 * Returns the file if its bytes can be read. Throws `lookup/not_file` for a folder, `not_found` for a deleted entry.
 */
export function readableFile(item: Stored | StoredDeletion): StoredFile {
  if (item.kind === 'folder') throw new StorageError({ kind: 'lookup', tag: 'not_file' });
  if (item.kind === 'deleted') throw new StorageError({ kind: 'lookup', tag: 'not_found' });
  return item;
}
