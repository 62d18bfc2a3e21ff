import { numberedName } from './file-name.ts';

declare const pathBrand: unique symbol;

/**
 * The path of a resource in a drive: absolute, NFC, one slash between names and none at the end; the root is `/`. Only
 * the functions of this file make one, so it contains no empty, `.` or `..` name and no NUL.
 */
export type Path = string & { readonly [pathBrand]: true };

export const ROOT = '/' as Path;

/**
 * Maximum depth of a path that a client sends. Real trees have a dozen levels; work on a path grows with the square of its
 * depth.
 */
export const DEPTH_MAX = 256;

/** A name that no path can contain; `message` says which name and why. */
export class PathError extends Error {
  override readonly name = 'PathError';
}

function checkedName(name: string): string {
  if (name === '' || name === '.' || name === '..')
    throw new PathError(`a name may not be ${name === '' ? 'empty' : `"${name}"`}`);
  if (name.includes('/') || name.includes('\0'))
    throw new PathError(`the name ${JSON.stringify(name)} contains a slash or a NUL`);
  if (!name.isWellFormed()) throw new PathError('a name is not well-formed Unicode');
  return ASCII.test(name) ? name : name.normalize('NFC');
}

/** Returns the path of these names, from the root down. Throws `PathError`. */
export function pathOf(names: readonly string[]): Path {
  return `/${names.map(checkedName).join('/')}` as Path;
}

const PLAIN = /^(?:\/[\w\-~!$&'()*+,;=:@][\w\-.~!$&'()*+,;=:@]*)+$/;

/** Returns `text` if it is a path as it stands, of characters that a URL need not escape; otherwise `undefined`. */
export function plainPath(text: string): Path | undefined {
  return PLAIN.test(text) ? (text as Path) : undefined;
}

/** Returns the path of `name` in `folder`. Throws `PathError`. */
export function join(folder: Path, name: string): Path {
  return (folder === ROOT ? `/${checkedName(name)}` : `${folder}/${checkedName(name)}`) as Path;
}

/** Returns the last name of `path`; `''` for the root. */
export function nameOf(path: Path): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

/** Returns the names of `path` from the root down; none for the root. */
export function namesOf(path: Path): string[] {
  return path === ROOT ? [] : path.slice(1).split('/');
}

/** Returns the folder that contains `path`; the root is its own parent. */
export function parentOf(path: Path): Path {
  const slash = path.lastIndexOf('/');
  return slash <= 0 ? ROOT : (path.slice(0, slash) as Path);
}

/**
 * Returns a character in the service's lower case: the simple mapping, one code point to one, so that neither `İ`
 * (two code points) nor a final sigma changes a name's length or meaning.
 */
function foldCharacter(character: string): string {
  const lower = character.toLowerCase();
  return [...lower].length === 1 ? lower : character;
}

// Names of plain ASCII are the common case and need no walk over code points.
const ASCII = /^[\x20-\x7e]*$/;

/** Returns a name as the service compares it: NFC and lower case. Names in one folder are the same iff these are equal. */
export function foldName(name: string): string {
  if (ASCII.test(name)) return name.toLowerCase();
  // NFC again, because Unicode has a single letter for `ǰ`, but none for `J̌`.
  return Array.from(name.normalize('NFC'), foldCharacter).join('').normalize('NFC');
}

/** Returns the key by which a path is compared and stored: two paths name one resource iff their keys are equal. */
export function keyOf(path: Path): string {
  return foldName(path);
}

/** Returns whether `path` is `ancestor` or lies below it. */
export function isWithin(path: Path, ancestor: Path): boolean {
  return isKeyWithin(keyOf(path), keyOf(ancestor));
}

/** Returns the key of the parent folder. A key is a path in folded case. */
export function parentKeyOf(key: string): string {
  return parentOf(key as Path);
}

/** Returns whether `key` is `above` or lies below it. */
export function isKeyWithin(key: string, above: string): boolean {
  return above === ROOT || key === above || key.startsWith(`${above}/`);
}

/** Returns the path of `path` after `from`, which is `path` or contains it, was moved to `to`. */
export function relocate(path: Path, from: Path, to: Path): Path {
  const below = namesOf(path).slice(namesOf(from).length);
  return pathOf([...namesOf(to), ...below]);
}

/** Returns `path` with a number after its name: `name (1).txt`. */
export function numberedPath(path: Path, number: number): Path {
  return pathOf([...namesOf(parentOf(path)), numberedName(nameOf(path), number)]);
}

/** Returns the path, or the first free one with a number after its name. */
export function freePath(path: Path, isFree: (candidate: Path) => boolean): Path {
  let candidate = path;
  for (let number = 1; !isFree(candidate); number++) candidate = numberedPath(path, number);
  return candidate;
}

/** A set of path keys that finds the members at and below a key without scanning the others. */
export class KeyTree {
  readonly #members = new Set<string>();
  /** For each key, the keys one level below it that are members or lead to members. */
  readonly #below = new Map<string, Set<string>>();

  add(key: string): void {
    this.#members.add(key);
    for (let child = key; child !== ROOT; child = parentKeyOf(child)) {
      const parent = parentKeyOf(child);
      const siblings = this.#below.get(parent);
      if (siblings?.has(child)) return;
      if (siblings) siblings.add(child);
      else this.#below.set(parent, new Set([child]));
    }
  }

  delete(key: string): void {
    if (!this.#members.delete(key)) return;
    let child = key;
    while (child !== ROOT && !this.#members.has(child) && !this.#below.has(child)) {
      const parent = parentKeyOf(child);
      const siblings = this.#below.get(parent);
      siblings?.delete(child);
      if (siblings?.size === 0) this.#below.delete(parent);
      child = parent;
    }
  }

  /** Returns the members at `key` and below. */
  within(key: string): string[] {
    const found: string[] = [];
    const pending = [key];
    for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
      if (this.#members.has(next)) found.push(next);
      for (const child of this.#below.get(next) ?? []) pending.push(child);
    }
    return found;
  }

  /** Returns the keys directly below `key` that are members or lead to members. */
  below(key: string): string[] {
    return [...(this.#below.get(key) ?? [])];
  }

  clear(): void {
    this.#members.clear();
    this.#below.clear();
  }
}
