import { archivePaths } from '../../util/archive-names.ts';
import { type ZipEntry, zipBytes, zipSizeBytes } from '../../util/zip.ts';
import type { Storage, StoredFile, StoredFolder } from '../storage/storage.ts';

/** Limits as at the real service: archives have fewer bytes and entries than these, including the folder itself. */
const ZIP_MAX_BYTES = 20_000_000_000;
const ZIP_MAX_ENTRIES = 10_000;
/** Each file has fewer bytes than this. */
const ZIP_FILE_MAX_BYTES = 4_000_000_000;

const PAGE_ENTRIES = 2000;

/** An archive of known length that is generated while it is sent. */
export interface FolderZip {
  readonly sizeBytes: number;
  readonly bytes: AsyncIterable<Uint8Array>;
}

/**
 * Returns an archive of a folder as it is now, with the folder as its root directory. `too_large`, `too_many_files`: it
 * exceeds the limits.
 */
export function folderZip(
  storage: Storage,
  namespace: string,
  folder: StoredFolder,
  nowMs: number,
): FolderZip | 'too_large' | 'too_many_files' {
  const items = itemsBelow(storage, namespace, folder);
  if (!items) return 'too_many_files';
  const files = items.filter((item) => item.kind === 'file');
  const totalBytes = files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  if (totalBytes >= ZIP_MAX_BYTES || files.some(({ sizeBytes }) => sizeBytes >= ZIP_FILE_MAX_BYTES))
    return 'too_large';
  const all = [folder, ...items];
  const paths = archivePaths(
    all.map((item) => folder.name + item.pathDisplay.slice(folder.pathDisplay.length)),
  );
  const entries = all.map((item, index) => zipEntry(storage, item, paths[index] ?? '', nowMs));
  return { sizeBytes: zipSizeBytes(entries), bytes: zipBytes(entries) };
}

/**
 * Returns the items below a folder, folders before their content; `undefined`: too many. Read in one turn, so that no
 * change comes in between.
 */
function itemsBelow(
  storage: Storage,
  namespace: string,
  folder: StoredFolder,
): (StoredFile | StoredFolder)[] | undefined {
  const owner = { namespace, account: '', app: '' };
  const scope = { path: folder.pathDisplay, recursive: true, includeDeleted: false };
  const items: (StoredFile | StoredFolder)[] = [];
  let page = storage.list(owner, scope, PAGE_ENTRIES);
  for (;;) {
    for (const entry of page.entries)
      if (entry.kind !== 'deleted' && entry.pathLower !== folder.pathLower) items.push(entry);
    if (items.length + 1 >= ZIP_MAX_ENTRIES) return undefined;
    if (!page.hasMore) return items;
    page = storage.listContinue(owner, page.cursor);
  }
}

/** Returns the archive entry of an item. Folders have no time of their own. */
function zipEntry(storage: Storage, item: StoredFile | StoredFolder, name: string, nowMs: number): ZipEntry {
  if (item.kind === 'folder') return { name: `${name}/`, modifiedMs: nowMs, sizeBytes: 0, bytes: nothing };
  const { clientModifiedMs: modifiedMs, sizeBytes } = item;
  return { name, modifiedMs, sizeBytes, bytes: () => storage.read(item, undefined) };
}

async function* nothing(): AsyncGenerator<Uint8Array> {}
