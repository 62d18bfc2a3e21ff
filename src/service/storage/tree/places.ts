import { splitName } from '../../../util/file-name.ts';
import { foldName } from '../../../util/path.ts';
import { StorageError } from '../storage.ts';

/** A path below the root at which an item is or could be. Keys are folded, names keep the requested spelling. */
export interface Place {
  /** The folder's key and a slash; `/` is the root. The paths below a folder are one range of these. */
  readonly parent: string;
  readonly nameKey: string;
  /** The whole path's key: `path_lower` in the API. */
  readonly key: string;
  /** Names from the root down, in NFC. */
  readonly names: readonly string[];
}

/** Maximum length of a name, in UTF-16 units; the real service counts an emoji as two. */
const NAME_LENGTH_MAX = 255;

/** Maximum length of a path, in UTF-16 units. The real service documents none, but keys and cursors need one. */
const PATH_LENGTH_MAX = 16_384;

/** Maximum depth of folders: each entry is stored with its whole path. */
const DEPTH_MAX = 512;

/** Names that the real service refuses in any case: desktop systems leave such files everywhere. */
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
 * Returns the place that `path` names (service-api.md §9.1); `undefined` is the root. Throws `malformed_path` with the
 * given `kind`, and for a write also `disallowed_name`.
 */
export function placeOf(path: string, kind: 'lookup' | 'write'): Place | undefined {
  if (path === '') return undefined;
  if (!path.startsWith('/')) throw malformed(kind);
  return placeOfNames(path.slice(1).normalize('NFC').split('/'), kind);
}

/** Like `placeOf`, for a path that is already split into names. */
function placeOfNames(names: readonly string[], kind: 'lookup' | 'write'): Place {
  for (const name of names) checkName(name, kind);
  const keys = names.map(foldName);
  const nameKey = keys.pop() ?? '';
  const parent = ['', ...keys, ''].join('/');
  return sizeChecked({ parent, nameKey, key: parent + nameKey, names }, kind);
}

/** Returns `place` unless it is too long or too deep. Throws `malformed_path`. */
export function sizeChecked(place: Place, kind: 'lookup' | 'write' = 'write'): Place {
  if (place.names.length > DEPTH_MAX || place.key.length > PATH_LENGTH_MAX) throw malformed(kind);
  return place;
}

/** Returns the place of another name in the same folder. */
export function renamed(place: Place, name: string): Place {
  return placeOfNames([...place.names.slice(0, -1), name], 'write');
}

/** Returns the place of the folder of `place`, which must not be the root. */
export function parentOf({ parent, names }: Place): Place {
  const key = parent.slice(0, -1);
  return { ...splitKey(key), key, names: names.slice(0, -1) };
}

/** Splits a key below the root into its two parts. */
export function splitKey(key: string): { readonly parent: string; readonly nameKey: string } {
  const start = key.lastIndexOf('/') + 1;
  return { parent: key.slice(0, start), nameKey: key.slice(start) };
}

/** Returns the refusal of a path that cannot name anything. */
export function malformed(kind: 'lookup' | 'write'): StorageError {
  return new StorageError({ kind, tag: 'malformed_path' });
}

/** Throws unless a file or folder may have this name (service-api.md §9.1). */
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
    // The specification allows any other character at the end, even line breaks.
    name.endsWith(' ') ||
    !name.isWellFormed();
  if (bad) throw malformed(kind);
}

/**
 * Yields the names that autorename tries after `name`, in order. A file's number goes before its extension; a stale
 * `update` makes a conflicted copy. The stem is shortened where a name would get too long.
 */
export function* alternatives(
  name: string,
  style: 'file' | 'folder' | 'conflicted-copy',
): Generator<string, void, undefined> {
  // With a longer extension, the name could not be extended.
  const { stem, extension } =
    style === 'folder' ? { stem: name, extension: '' } : splitName(name, EXTENSION_LENGTH_MAX);
  if (style === 'conflicted-copy') yield fitted(stem, ' (conflicted copy)', extension);
  for (let number = 1; number <= ALTERNATIVES_MAX; number++) {
    const suffix = style === 'conflicted-copy' ? ` (conflicted copy ${number})` : ` (${number})`;
    yield fitted(stem, suffix, extension);
  }
}

/** Maximum length of an extension that stays behind the number, with its dot, in UTF-16 units. */
const EXTENSION_LENGTH_MAX = 128;

/** Maximum number of names that autorename tries before it returns the conflict. */
const ALTERNATIVES_MAX = 10_000;

/** Shortens the stem until the name fits. Never cuts a character in two. */
function fitted(stem: string, suffix: string, extension: string): string {
  const room = Math.max(1, NAME_LENGTH_MAX - suffix.length - extension.length);
  const kept = stem.slice(0, room);
  return `${kept.isWellFormed() ? kept : kept.slice(0, -1)}${suffix}${extension}`;
}
