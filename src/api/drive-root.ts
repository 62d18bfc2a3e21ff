import {
  foldName,
  join,
  nameOf,
  namesOf,
  type Path,
  PathError,
  parentOf,
  pathOf,
  ROOT,
} from '../util/path.ts';
import type { FileMetadata, FolderMetadata, Metadata } from '../wire/files.ts';
import { ApiError } from './errors.ts';
import type { Change, Entry, EntryLocation, FileEntry, FolderEntry } from './remote.ts';
import type { WireNames } from './wire-names.ts';

interface Named {
  readonly name: string;
  readonly path_lower?: string;
  readonly path_display?: string;
}

/** The folder of an entry. */
export interface FolderOfEntry {
  /** In its true letter case. */
  readonly path: Path;
  /**
   * Names of the folders at the service from there down to the entry, which are parts of its name, in their true letter
   * case. When absent, the entry's own path tells them.
   */
  readonly parts?: readonly string[];
}

/** An entry of a kind that this client does not know. */
export class UnknownKind extends Error {
  override readonly name = 'UnknownKind';

  constructor(readonly tag: string) {
    super(`an entry of the unknown kind "${tag}"`);
  }
}

/**
 * The account's folder that is the drive's root. Translates the drive's paths to those on the wire and back, and checks
 * the fields of entries that we depend on. Throws `TypeError` for an entry that makes no sense, `PathError` for a name
 * that no path can contain, or `UnknownKind`.
 */
export class DriveRoot {
  readonly #names: readonly string[];

  /** `folder` is a path at the service like `/Team/Projects`, or `''` for the whole account. Throws `PathError`. */
  constructor(
    folder: string,
    private readonly wireNames: WireNames,
  ) {
    const inner = folder.replace(/^\/+|\/+$/g, '');
    this.#names = inner === '' ? [] : namesOf(pathOf(inner.split('/')));
  }

  /** Returns the path on the wire, where the account's root is `''`. */
  toWire(path: Path): string {
    const below = namesOf(path).flatMap((name) => this.wireNames.toWire(name));
    return [...this.#names, ...below].map((name) => `/${name}`).join('');
  }

  /** Returns the path on the wire of an entry to be changed. Throws `no-permission` for the drive's root. */
  belowRoot(path: Path): string {
    if (path === ROOT)
      throw new ApiError('no-permission', 'the root of the drive cannot be created, moved or removed');
    return this.toWire(path);
  }

  /** Returns the name at the service of the entry itself, without the parts of its name that are folders above it. */
  ownName(name: string): string | undefined {
    return this.wireNames.toWire(name).at(-1);
  }

  /** Returns whether an entry is or was a folder at the service that is only a part of names in the drive. */
  isPart({ '.tag': tag, name }: Metadata): boolean {
    return (tag === 'folder' || tag === 'deleted') && isText(name) && this.wireNames.isPart(name);
  }

  /** Returns the folder in which entries have names with the part that `metadata` describes; `undefined` outside the drive. */
  folderOfPart(metadata: Metadata): Path | undefined {
    checkPlace(metadata);
    const above = shownNames(metadata)?.slice(0, -1);
    return above && this.#pathOfNames(above.slice(0, above.length - this.#partsAbove(metadata).length));
  }

  file(metadata: FileMetadata, folder?: FolderOfEntry): FileEntry {
    const { id, rev, size: sizeBytes, content_hash: contentHash } = metadata;
    if (!isText(id) || !isText(rev) || !Number.isSafeInteger(sizeBytes) || sizeBytes < 0)
      throw new TypeError('a file without id, rev or size');
    return {
      kind: 'file',
      id,
      ...this.#place(metadata, folder),
      rev,
      sizeBytes,
      ...(contentHash !== undefined && { contentHash }),
      ...(metadata.is_downloadable === false && { isDownloadable: false as const }),
      modifiedMs: timeOf(metadata.client_modified),
      committedMs: timeOf(metadata.server_modified),
    };
  }

  folder(metadata: FolderMetadata, folder?: FolderOfEntry): FolderEntry {
    if (!isText(metadata.id)) throw new TypeError('a folder without id');
    return { kind: 'folder', id: metadata.id, ...this.#place(metadata, folder) };
  }

  /** Reads an entry; `folder` is given if known. Throws for a deleted entry too. */
  entry(metadata: Metadata, folder?: FolderOfEntry): Entry {
    switch (metadata['.tag']) {
      case 'file':
        return this.file(metadata, folder);
      case 'folder':
        return this.folder(metadata, folder);
      case 'deleted':
        throw new TypeError('neither a file nor a folder');
      default:
        return this.#ofUnknownKind(metadata, folder);
    }
  }

  /** Reads a change. Returns `undefined` outside the drive, and for the drive's root itself. */
  change(metadata: Metadata, folder?: FolderOfEntry): Change | undefined {
    const deleted = metadata['.tag'] === 'deleted';
    checkPlace(metadata);
    const path = this.#pathOf(metadata);
    if (path === undefined || (path === ROOT && !deleted)) return undefined;
    return deleted ? { kind: 'deleted', path } : { kind: 'put', entry: this.entry(metadata, folder) };
  }

  /** Returns where an entry of any kind is; `undefined` for a deleted one, `outside` also where no path can name it. */
  locationOf(metadata: Metadata): EntryLocation | undefined {
    if (metadata['.tag'] === 'deleted') return undefined;
    // The entry is in a shared folder that the account has not mounted.
    if (isText(metadata.name) && (metadata.path_display ?? metadata.path_lower) === undefined)
      return 'outside';
    checkPlace(metadata);
    try {
      return this.#pathOf(metadata) ?? 'outside';
    } catch (error) {
      if (error instanceof PathError) return 'outside';
      throw error;
    }
  }

  /** Returns where the entry of a link is; `undefined` outside the drive, and where the service does not say. */
  linked(metadata: Named): Path | undefined {
    const path = this.#pathOf(metadata);
    if (path === undefined || path === ROOT) return path;
    const name = this.#nameOf(metadata);
    return foldName(name) === foldName(nameOf(path)) ? join(parentOf(path), name) : path;
  }

  /** Reads an entry of an unknown kind as a file, so that clients see it. `file` checks that it has all fields of one. */
  #ofUnknownKind(
    metadata: FileMetadata & { readonly '.tag': unknown },
    folder: FolderOfEntry | undefined,
  ): FileEntry {
    const tag = metadata['.tag'];
    if (!isText(tag)) throw new TypeError('an entry without a kind');
    if (!isText(metadata.rev)) throw new UnknownKind(tag);
    return this.file(metadata, folder);
  }

  /**
   * Returns an entry's path and name. The last name at the service and `folder` are in their true letter case; the names
   * above, as the service gives them, may not be (service-api.md §9.1).
   */
  #place(metadata: Named, folder: FolderOfEntry | undefined): { readonly path: Path; readonly name: string } {
    checkPlace(metadata);
    const name = this.#nameOf(metadata, folder?.parts);
    const path = folder === undefined ? this.#pathOf(metadata) : join(folder.path, name);
    if (path === undefined) throw new PathError('an entry outside the drive');
    return { path, name };
  }

  #nameOf(metadata: Named, parts = this.#partsAbove(metadata)): string {
    return (this.wireNames.fromWire([...parts, metadata.name]).at(-1) ?? '').normalize('NFC');
  }

  #partsAbove(metadata: Named): readonly string[] {
    const above = shownNames(metadata)?.slice(0, -1) ?? [];
    return above.slice(above.findLastIndex((name) => !this.wireNames.isPart(name)) + 1);
  }

  #pathOf(metadata: Named): Path | undefined {
    const names = shownNames(metadata);
    return names && this.#pathOfNames(names);
  }

  #pathOfNames(names: readonly string[]): Path | undefined {
    const outside = this.#names.some((name, depth) => foldName(name) !== foldName(names[depth] ?? ''));
    if (outside) return undefined;
    return pathOf(this.wireNames.fromWire(names.slice(this.#names.length)));
  }
}

/** Returns the names on the path of an entry at the service, where it says them. */
function shownNames({ path_display, path_lower }: Named): readonly string[] | undefined {
  return (path_display ?? path_lower)?.split('/').slice(1);
}

/** Throws for an entry without a name or a path: skipping it would hide a file, and guessing would show a wrong one. */
function checkPlace({ name, path_lower, path_display }: Named): void {
  const path = path_display ?? path_lower;
  if (!isText(name) || !isText(path) || !path.startsWith('/'))
    throw new TypeError('an entry without name or path');
  if (foldName(path.slice(path.lastIndexOf('/') + 1)) !== foldName(name))
    throw new TypeError('an entry whose path ends with another name');
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

/** Returns a timestamp on the wire in ms since 1970. */
export function timeOf(timestamp: string): number {
  const ms = Date.parse(timestamp);
  if (Number.isNaN(ms)) throw new TypeError('an invalid timestamp');
  return ms;
}

/** Returns a timestamp as on the wire: whole seconds, rounded down. */
export function timestampOf(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`;
}
