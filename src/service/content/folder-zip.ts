import { archivePaths } from '../../util/archive-names.ts';
import { type ZipEntry, zipBytes, zipSizeBytes } from '../../util/zip.ts';
import type { Storage, Stored, StoredFile, StoredFolder } from '../storage/storage.ts';

/** Limits as at the real service: archives have fewer bytes and entries than these, including the folder itself. */
const ZIP_BYTES_MAX = 20_000_000_000;
const ZIP_ENTRIES_MAX = 10_000;
/** Each file has fewer bytes than this. */
const ZIP_FILE_BYTES_MAX = 4_000_000_000;

/** An archive of known length that is generated while it is sent. */
export interface FolderZip {
  /** The folder in it. */
  readonly folder: StoredFolder;
  readonly sizeBytes: number;
  readonly bytes: AsyncIterable<Uint8Array>;
}

/**
 * Returns an archive of a folder as it is now, with the folder as its root directory. `too_large`, `too_many_files`: it
 * exceeds the limits. Throws `lookup/…` unless `address` names a folder.
 */
export async function folderZip(
  storage: Storage,
  namespace: string,
  address: string,
  nowMs: number,
): Promise<FolderZip | 'too_large' | 'too_many_files'> {
  const all = await storage.listAll(namespace, address, ZIP_ENTRIES_MAX - 1);
  if (!all) return 'too_many_files';
  const [folder] = all;
  const files = all.filter((item) => item.kind === 'file');
  const totalBytes = files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  if (totalBytes >= ZIP_BYTES_MAX || files.some(({ sizeBytes }) => sizeBytes >= ZIP_FILE_BYTES_MAX))
    return 'too_large';
  const paths = archivePaths(
    all.map((item) => folder.name + item.pathDisplay.slice(folder.pathDisplay.length)),
  );
  const read = (file: StoredFile) => storage.read(namespace, file, undefined, { lent: true });
  const entries = all.map((item, index) => zipEntry(item, paths[index] ?? '', nowMs, read));
  return { folder, sizeBytes: zipSizeBytes(entries), bytes: zipBytes(entries) };
}

/** Returns the archive entry of an item. Folders have no time of their own. */
function zipEntry(
  item: Stored,
  name: string,
  nowMs: number,
  read: (file: StoredFile) => AsyncIterable<Uint8Array>,
): ZipEntry {
  if (item.kind === 'folder') return { name: `${name}/`, modifiedMs: nowMs, sizeBytes: 0, bytes: nothing };
  const { clientModifiedMs: modifiedMs, sizeBytes } = item;
  return { name, modifiedMs, sizeBytes, bytes: () => read(item) };
}

async function* nothing(): AsyncGenerator<Uint8Array> {}
