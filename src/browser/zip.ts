import { DavError } from '../dav/errors.ts';
import { FileError, requireDownloadable } from '../drive/errors.ts';
import type { Entry, FileEntry, Files } from '../drive/files.ts';
import { linkedSignal } from '../util/abort.ts';
import { archivePaths } from '../util/archive-names.ts';
import { fileNameOf } from '../util/content-disposition.ts';
import { LongLoop } from '../util/long-loop.ts';
import { keyOf, nameOf, namesOf, type Path, parentKeyOf, parentOf, pathOf, ROOT } from '../util/path.ts';
import { ZIP_TYPE, type ZipEntry, zipBytes, zipSizeBytes } from '../util/zip.ts';
import { ReadAhead } from './read-ahead.ts';
import { type Context, pathFrom, type Route } from './route.ts';

/** Maximum size of the form, in bytes: 10,000 names of usual lengths, each letter taking up to nine. */
const FORM_BYTES_MAX = 16 * 1024 * 1024;

/** Maximum length of all chosen paths together, in UTF-16 units: each begins with the folder, which came only once. */
const PATHS_LENGTH_MAX = 32 * 1024 * 1024;

/** Maximum number of files and folders in an archive: a header of each is kept until its end. */
const ENTRIES_MAX = 200_000;

/**
 * `zip`: files and folders as one archive. `folder` is the folder that they lie in, `names` a JSON list of their paths
 * below it. The archive is made while it is sent, and its length is known before: a download that breaks off is never
 * taken for a whole one. Files are stored, not compressed, because most kinds of large ones are compressed already.
 */
export const zip: Route = {
  method: 'POST',
  formBytesMax: FORM_BYTES_MAX,
  async run(context) {
    const { drive, input, signal } = context;
    const folder = input.path('folder');
    const chosen = await withoutCovered(await pathsIn(input.text('names'), folder));
    const items = await itemsOf(drive.files, chosen, folder, signal);
    const [only] = chosen;
    const name = chosen.length === 1 && only ? nameOf(only) : nameOf(folder) || drive.name;
    await send(context, items, folder, `${name}.zip`);
  },
};

/** Throws `DavError` 400 unless `text` is a JSON list of one or more paths below `folder`, and `FileError` for too many. */
async function pathsIn(text: string, folder: Path): Promise<readonly Path[]> {
  const refused = new DavError(400, '"names" must be a JSON list of paths below "folder"');
  let names: unknown;
  try {
    names = JSON.parse(text);
  } catch {
    throw refused;
  }
  if (!Array.isArray(names) || names.length === 0) throw refused;
  if (names.length > ENTRIES_MAX || names.length * folder.length > PATHS_LENGTH_MAX) throw tooMany();
  const paths: Path[] = [];
  const loop = new LongLoop();
  for (const name of names) {
    if (typeof name !== 'string') throw refused;
    paths.push(pathFrom('names', [...namesOf(folder), ...name.split('/')]));
    if (loop.isDue) await loop.pause();
  }
  return paths;
}

function tooMany(): FileError {
  return new FileError('too-many', `an archive holds ${ENTRIES_MAX} files and folders at most; choose fewer`);
}

/** Removes the paths below other ones, which come with them. */
async function withoutCovered(paths: readonly Path[]): Promise<readonly Path[]> {
  const byKey = new Map<string, Path>();
  const loop = new LongLoop();
  for (const path of paths) {
    byKey.set(keyOf(path), path);
    if (loop.isDue) await loop.pause();
  }
  const isCovered = (key: string): boolean => {
    for (let above = key; above !== ROOT; ) {
      above = parentKeyOf(above);
      if (byKey.has(above)) return true;
    }
    return false;
  };
  const left: Path[] = [];
  for (const [key, path] of byKey) {
    if (!isCovered(key)) left.push(path);
    if (loop.isDue) await loop.pause();
  }
  return left;
}

/** A file or folder, and where it goes in the archive. */
interface Item {
  readonly path: Path;
  /** `undefined` for a folder that is there only because something in it was chosen. */
  readonly entry: Entry | undefined;
}

/**
 * Returns the chosen entries with everything below them, folders before their content. Throws for a document without bytes: an
 * archive that lacks a file looks whole.
 */
async function itemsOf(
  files: Files,
  chosen: readonly Path[],
  folder: Path,
  signal: AbortSignal,
): Promise<readonly Item[]> {
  const items = new Map<string, Item>();
  const add = (path: Path, entry: Entry | undefined) => {
    if (entry?.kind === 'file') requireDownloadable(entry);
    items.set(keyOf(path), { path, entry });
    if (items.size > ENTRIES_MAX) throw tooMany();
  };
  for (const [parent, paths] of byParent(chosen)) {
    // One listing instead of a call for each of 10,000 files.
    const { children } = await files.list(parent, signal);
    const found = new Map(children.map((child) => [keyOf(child.path), child]));
    for (const above of foldersBetween(folder, parent)) if (!items.has(keyOf(above))) add(above, undefined);
    for (const path of paths) {
      const entry = found.get(keyOf(path));
      if (!entry) throw new FileError('not-found', `${path} is not there`);
      add(entry.path, entry);
      if (entry.kind === 'file') continue;
      for await (const listing of files.walk(entry.path, signal))
        for (const child of listing.children) add(child.path, child);
    }
  }
  return [...items.values()];
}

function byParent(paths: readonly Path[]): ReadonlyMap<Path, readonly Path[]> {
  const groups = new Map<Path, Path[]>();
  for (const path of paths) {
    const group = groups.get(parentOf(path));
    if (group) group.push(path);
    else groups.set(parentOf(path), [path]);
  }
  return groups;
}

/** Returns the folders below `folder` down to `last`, which lies in it. */
function foldersBetween(folder: Path, last: Path): readonly Path[] {
  const names = namesOf(last);
  const from = namesOf(folder).length;
  return names.slice(from).map((_, index) => pathOf(names.slice(0, from + index + 1)));
}

/** Sends the archive. A failure before the first bytes of a file have been read is answered with its own status. */
async function send(
  { exchange, drive, clock, signal }: Context,
  items: readonly Item[],
  folder: Path,
  name: string,
): Promise<void> {
  const { response } = exchange;
  const over = new AbortController();
  const reading = linkedSignal(signal, over.signal);
  const isNotEmpty = (entry: Entry | undefined): entry is FileEntry =>
    entry?.kind === 'file' && entry.sizeBytes > 0;
  const content = new ReadAhead(items.map(({ entry }) => entry).filter(isNotEmpty), (file) =>
    drive.files.read(file, undefined, reading.signal),
  );
  const from = namesOf(folder).length;
  const paths = archivePaths(items.map(({ path }) => namesOf(path).slice(from).join('/')));
  const entries = items.map(({ entry }, index): ZipEntry => {
    const path = paths[index] ?? '';
    const modifiedMs = entry?.modifiedMs ?? clock.now();
    return entry?.kind === 'file'
      ? { name: path, modifiedMs, sizeBytes: entry.sizeBytes, bytes: () => content.next() }
      : { name: `${path}/`, modifiedMs, sizeBytes: 0, bytes: nothing };
  });
  const begin = () =>
    exchange.writeHead(200, {
      'Content-Type': ZIP_TYPE,
      'Content-Length': zipSizeBytes(entries),
      'Content-Disposition': `attachment; ${fileNameOf(name)}`,
      'Cache-Control': 'no-store',
      'Content-Security-Policy': 'sandbox',
      'X-Content-Type-Options': 'nosniff',
    });
  const headers: Uint8Array[] = [];
  try {
    for await (const piece of zipBytes(entries)) {
      if (!content.hasBegun) {
        headers.push(piece);
        continue;
      }
      if (!response.headersSent) begin();
      for (const header of headers.splice(0)) await exchange.write(header);
      await exchange.write(piece);
      signal.throwIfAborted();
    }
    if (!response.headersSent) begin();
    for (const header of headers) await exchange.write(header);
    response.end();
  } finally {
    over.abort();
    reading.release();
  }
}

async function* nothing(): AsyncGenerator<Uint8Array> {}
