import { foldName } from '../../../util/path.ts';
import { StorageError } from '../storage.ts';

/** Where something is or could be, below the root. Keys are folded, names as they were asked for. */
export interface Place {
  /** The folder's key and a slash; `/` is the root. All that lies below a folder is one range of these. */
  readonly parent: string;
  readonly nameKey: string;
  /** The whole path's key: `path_lower` on the wire. */
  readonly key: string;
  /** From the root down, NFC. */
  readonly names: readonly string[];
}

/** UTF-16 units a name may have; the service counts an emoji as two. */
const NAME_LENGTH_MAX = 255;

/** UTF-16 units a path may have: no limit of the service is known, but keys and cursors need one. */
const PATH_LENGTH_MAX = 16_384;

/** Folders above each other: each is stored with its whole path. */
const DEPTH_MAX = 512;

/** Names the service refuses in any case, as desktop systems drop them everywhere. */
const DISALLOWED = new Set([
  'desktop.ini',
  'thumbs.db',
  '.ds_store',
  'icon\r',
  '.dropbox',
  '.dropbox.attr',
  '.dropbox.cache',
]);

/**
 * The place `path` names (service-api.md §9.1); `undefined` is the root. Throws `malformed_path` of the
 * `kind` of error the caller answers with, and `disallowed_name` to who would write.
 */
export function placeOf(path: string, kind: 'lookup' | 'write'): Place | undefined {
  if (path === '') return undefined;
  if (!path.startsWith('/')) throw malformed(kind);
  return placeOfNames(path.slice(1).normalize('NFC').split('/'), kind);
}

/** As `placeOf`, for names that were taken apart already. */
function placeOfNames(names: readonly string[], kind: 'lookup' | 'write'): Place {
  for (const name of names) checkName(name, kind);
  const keys = names.map(foldName);
  const nameKey = keys.pop() ?? '';
  const parent = ['', ...keys, ''].join('/');
  return sizeChecked({ parent, nameKey, key: parent + nameKey, names }, kind);
}

/** `place` when it is not too long and not too deep. Throws `malformed_path`. */
export function sizeChecked(place: Place, kind: 'lookup' | 'write' = 'write'): Place {
  if (place.names.length > DEPTH_MAX || place.key.length > PATH_LENGTH_MAX) throw malformed(kind);
  return place;
}

/** The same folder's place for another name. */
export function renamed(place: Place, name: string): Place {
  return placeOfNames([...place.names.slice(0, -1), name], 'write');
}

/** The place of the folder that `place` is in, which is not the root. */
export function parentOf({ parent, names }: Place): Place {
  const key = parent.slice(0, -1);
  return { ...splitKey(key), key, names: names.slice(0, -1) };
}

/** The two parts of a key below the root. */
export function splitKey(key: string): { readonly parent: string; readonly nameKey: string } {
  const start = key.lastIndexOf('/') + 1;
  return { parent: key.slice(0, start), nameKey: key.slice(start) };
}

/** The refusal of a path that can name nothing. */
export function malformed(kind: 'lookup' | 'write'): StorageError {
  return new StorageError({ kind, tag: 'malformed_path' });
}

/** Throws when no file or folder may have this name (service-api.md §9.1). */
function checkName(name: string, kind: 'lookup' | 'write'): void {
  if (DISALLOWED.has(foldName(name))) {
    if (kind === 'write') throw new StorageError({ kind, tag: 'disallowed_name' });
    return;
  }
  const bad =
    name === '' ||
    name === '.' ||
    name === '..' ||
    name.length > NAME_LENGTH_MAX ||
    name.includes('\\') ||
    name.includes('\0') ||
    name.includes('\u007f') ||
    // The specification allows any other character at the end, line breaks too.
    name.endsWith(' ') ||
    !name.isWellFormed();
  if (bad) throw malformed(kind);
}

/**
 * The names autorename tries after `name`, in order. A file's number goes before its extension; a stale
 * `update` makes a conflicted copy. A name grows at the cost of its stem where it would get too long.
 */
export function* alternatives(
  name: string,
  style: 'file' | 'folder' | 'conflicted-copy',
): Generator<string, void, undefined> {
  const last = style === 'folder' ? -1 : name.lastIndexOf('.');
  // So long an ending is none: with it the name could not grow.
  const dot = name.length - last > EXTENSION_LENGTH_MAX ? -1 : last;
  const stem = dot > 0 ? name.slice(0, dot) : name;
  const extension = dot > 0 ? name.slice(dot) : '';
  if (style === 'conflicted-copy') yield fitted(stem, ' (conflicted copy)', extension);
  for (let number = 1; number <= ALTERNATIVES_MAX; number++) {
    const suffix = style === 'conflicted-copy' ? ` (conflicted copy ${number})` : ` (${number})`;
    yield fitted(stem, suffix, extension);
  }
}

/** UTF-16 units of an ending that stays behind the number, with its dot. */
const EXTENSION_LENGTH_MAX = 128;

/** Names that autorename tries before it gives up with the conflict. */
const ALTERNATIVES_MAX = 10_000;

/** Never cuts a character in two. */
function fitted(stem: string, suffix: string, extension: string): string {
  const room = Math.max(1, NAME_LENGTH_MAX - suffix.length - extension.length);
  const kept = stem.slice(0, room);
  return `${kept.isWellFormed() ? kept : kept.slice(0, -1)}${suffix}${extension}`;
}
