import type { Storage, StoredFile, StoredFolder } from '../storage/storage.ts';
import { archivePaths } from './archive-names.ts';
import { ZIP_FILE_MAX_BYTES, type ZipEntry, zipBytes, zipSizeBytes } from './zip.ts';

/** As the real service has them: fewer bytes and entries than these, the folder itself counted. */
const ZIP_MAX_BYTES = 20_000_000_000;
const ZIP_MAX_ENTRIES = 10_000;

const PAGE_ENTRIES = 2000;

/** An archive of known length that is made while it is sent. */
export interface FolderZip {
  readonly sizeBytes: number;
  readonly bytes: AsyncIterable<Uint8Array>;
}

/**
 * A folder and all below it as they are now; the folder is the archive's root directory. `too_large`, `too_many_files`: it
 * is beyond the limits.
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
 * Read without a pause, so that no change comes in between; folders come before what is in them. `undefined`: too many.
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

/** Folders have no time of their own. */
function zipEntry(storage: Storage, item: StoredFile | StoredFolder, name: string, nowMs: number): ZipEntry {
  if (item.kind === 'folder') return { name: `${name}/`, modifiedMs: nowMs, sizeBytes: 0, bytes: nothing };
  const { clientModifiedMs: modifiedMs, sizeBytes } = item;
  return { name, modifiedMs, sizeBytes, bytes: () => storage.read(item, undefined) };
}

async function* nothing(): AsyncGenerator<Uint8Array> {}
