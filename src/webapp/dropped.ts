import { join } from './paths.ts';
import type { NewFile } from './uploads.ts';

/**
 * Returns the files that were dropped or pasted, those in folders too, with their paths below `folder`. What the browser cannot
 * read has no file.
 */
export async function filesIn(data: DataTransfer, folder: string): Promise<readonly NewFile[]> {
  // The list is empty after the first `await`.
  const entries = [...data.items].map((item) => item.webkitGetAsEntry()).filter((entry) => entry !== null);
  const found = await Promise.all(entries.map((entry) => filesBelow(entry, folder)));
  if (entries.length > 0) return found.flat();
  // A pasted picture has no entry.
  return [...data.files].map((file) => ({ path: join(folder, file.name), file }));
}

/** Returns the files that a file input holds, with their paths below `folder`. */
export function filesOf(list: FileList, folder: string): readonly NewFile[] {
  return [...list].map((file) => ({ path: join(folder, file.webkitRelativePath || file.name), file }));
}

async function filesBelow(entry: FileSystemEntry, folder: string): Promise<readonly NewFile[]> {
  const path = join(folder, entry.name);
  try {
    if (isFile(entry)) {
      const file = await new Promise<File>((resolve, reject) => entry.file(resolve, reject));
      return [{ path, file }];
    }
    if (!isDirectory(entry)) return [];
    const children = await childrenOf(entry);
    return (await Promise.all(children.map((child) => filesBelow(child, path)))).flat();
  } catch {
    return [{ path, file: undefined }];
  }
}

// Chromium has no global names for the classes of entries.
function isFile(entry: FileSystemEntry): entry is FileSystemFileEntry {
  return entry.isFile;
}

function isDirectory(entry: FileSystemEntry): entry is FileSystemDirectoryEntry {
  return entry.isDirectory;
}

/** Returns the entries of a folder. A browser returns them in parts; an empty part is the last. */
async function childrenOf(directory: FileSystemDirectoryEntry): Promise<readonly FileSystemEntry[]> {
  const reader = directory.createReader();
  const all: FileSystemEntry[] = [];
  for (;;) {
    const part = await new Promise<FileSystemEntry[]>((resolve, reject) =>
      reader.readEntries(resolve, reject),
    );
    if (part.length === 0) return all;
    for (const entry of part) all.push(entry);
  }
}
