import { StorageError, type Stored, type StoredDeletion, type StoredFile } from '../storage/storage.ts';

/** What was looked up, if its bytes can be read. Throws `lookup/not_file` for a folder, `not_found` for what was deleted. */
export function readableFile(item: Stored | StoredDeletion): StoredFile {
  if (item.kind === 'folder') throw new StorageError({ kind: 'lookup', tag: 'not_file' });
  if (item.kind === 'deleted') throw new StorageError({ kind: 'lookup', tag: 'not_found' });
  return item;
}
