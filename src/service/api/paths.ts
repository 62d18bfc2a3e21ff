import { StorageError } from '../storage/storage.ts';
import { BadArgument } from './failures.ts';
import { type Schema, string } from './schema.ts';

/**
 * The forms of a path, by endpoint. `shown` is the published pattern, which errors quote; paths are matched by an
 * equivalent that needs no backtracking and whose `.` matches every character.
 */
const ABSOLUTE = '(/(.|[\\r\\n])*)';
const NAMESPACE = '(ns:[0-9]+(/(.|[\\r\\n])*)?)';

/** get_metadata, download, shared links. */
export const readPath: Schema<string> = string({
  pattern: {
    shown: `(/(.|[\\r\\n])*|id:.*)|(rev:[0-9a-f]{9,})|${NAMESPACE}`,
    test: /^(?:\/.*|id:.*|rev:[0-9a-f]{9,}|ns:[0-9]+(?:\/.*)?)$/s,
  },
});

/** delete, permanently_delete, move, copy. */
export const writePathOrId: Schema<string> = string({
  pattern: {
    shown: `${ABSOLUTE}|${NAMESPACE}|(id:.*)`,
    test: /^(?:\/.*|ns:[0-9]+(?:\/.*)?|id:.*)$/s,
  },
});

/** create_folder, restore. */
export const writePath: Schema<string> = string({
  pattern: { shown: `${ABSOLUTE}|${NAMESPACE}`, test: /^(?:\/.*|ns:[0-9]+(?:\/.*)?)$/s },
});

/** list_folder: may be empty for the root. */
export const pathOrRoot: Schema<string> = string({
  pattern: {
    shown: `${ABSOLUTE}?|id:.*|${NAMESPACE}`,
    test: /^(?:(?:\/.*)?|id:.*|ns:[0-9]+(?:\/.*)?)$/s,
  },
});

/** list_revisions. */
export const pathOrId: Schema<string> = string({
  pattern: {
    shown: `/(.|[\\r\\n])*|id:.*|${NAMESPACE}`,
    test: /^(?:\/.*|id:.*|ns:[0-9]+(?:\/.*)?)$/s,
  },
});

/** get_shared_link_metadata, get_shared_link_file: a path inside a linked folder. */
export const absolutePath: Schema<string> = string({
  pattern: { shown: '/(.|[\\r\\n])*', test: /^\//s },
});

/** Whether an upload's destination has one of the three forms; if not, the answer is 409 instead of 400. */
export function isUploadPath(path: string): boolean {
  return /^(?:\/.*|ns:[0-9]+(?:\/.*)?|id:.*)$/s.test(path);
}

const REV_CHARACTERS_MIN = 9;

export const rev: Schema<string> = string({
  minLength: REV_CHARACTERS_MIN,
  pattern: { shown: '[0-9a-f]+', test: /^[0-9a-f]+$/ },
});

const HASH_CHARACTERS = 64;

/** Sha256HexHash, also in upper case, because it is the same hash. */
export const contentHash: Schema<string> = (value) =>
  string({ minLength: HASH_CHARACTERS, maxLength: HASH_CHARACTERS })(value).toLowerCase();

const NAMESPACE_PATH = /^ns:([0-9]+)(\/.*)?$/s;

/**
 * Returns the store's address of a path: in `namespace`, without the `ns:` form. The root is `''`. This account finds
 * nothing in another account's namespace.
 */
export function addressOf(path: string, namespace: string, side?: 'from' | 'to'): string {
  const match = NAMESPACE_PATH.exec(path);
  if (!match) return path;
  const [, number, below = ''] = match;
  if (number !== namespace) throw new StorageError({ kind: 'lookup', tag: 'not_found' }, side);
  return below === '/' ? '' : below;
}

/** Like `addressOf`, for operations that the root does not have. */
export function itemAddress(path: string, namespace: string, side?: 'from' | 'to'): string {
  const address = addressOf(path, namespace, side);
  if (isRoot(address)) throw new StorageError({ kind: 'lookup', tag: 'malformed_path' }, side);
  return address;
}

/** Like `addressOf`, for a destination: nothing can be written into another namespace. */
export function destination(path: string, namespace: string): string {
  const number = NAMESPACE_PATH.exec(path)?.[1];
  if (number !== undefined && number !== namespace)
    throw new StorageError({ kind: 'write', tag: 'no_write_permission' }, 'to');
  return itemAddress(path, namespace, 'to');
}

/** Like `addressOf`, but refuses the root, for functions that do not have it (get_metadata, links). */
export function exceptRoot(path: string, namespace: string): string {
  const address = addressOf(path, namespace);
  if (isRoot(address)) throw new BadArgument('path: The root folder is unsupported.');
  return address;
}

function isRoot(address: string): boolean {
  return address === '' || address === '/';
}
