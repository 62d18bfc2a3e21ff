import { type Schema, string } from './schema.ts';

/**
 * The forms a path may take, per endpoint. `shown` is the published pattern, which errors quote; it is
 * matched by an equivalent that needs no backtracking and in which `.` is any character at all.
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

/** list_folder: may be empty, which is the root. */
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

/** Whether an upload's destination has one of the three forms; if not, that is a 409 and no 400. */
export function isUploadPath(path: string): boolean {
  return /^(?:\/.*|ns:[0-9]+(?:\/.*)?|id:.*)$/s.test(path);
}

const REV_MIN_CHARACTERS = 9;

export const rev: Schema<string> = string({
  minLength: REV_MIN_CHARACTERS,
  pattern: { shown: '[0-9a-f]+', test: /^[0-9a-f]+$/ },
});

const HASH_CHARACTERS = 64;

/** Sha256HexHash. Upper case is taken too, as it names the same hash. */
export const contentHash: Schema<string> = (value) =>
  string({ minLength: HASH_CHARACTERS, maxLength: HASH_CHARACTERS })(value).toLowerCase();
