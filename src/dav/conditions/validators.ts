import type { IncomingHttpHeaders } from 'node:http';
import type { FileEntry } from '../../drive/files.ts';
import { parseHttpDate } from '../http-date.ts';

/** The validators of a representation (RFC 9110 §8.8), with which conditional headers are compared. */
export interface Validators {
  /** Value of `ETag`; folders have none. */
  readonly entityTag?: string;
  /** Milliseconds since 1970. */
  readonly modifiedMs?: number;
}

/** Returns the strong entity tag of a file: its revision, which identifies its content. */
export function entityTagOf({ rev }: FileEntry): string {
  return `"${rev}"`;
}

export function validatorsOf(entry: FileEntry): Validators {
  return { entityTag: entityTagOf(entry), modifiedMs: entry.modifiedMs };
}

export type ConditionsResult = 'proceed' | 'not-modified' | 'failed';

/**
 * Evaluates the conditional headers in the order of RFC 9110 §13.2.2. `current` is `undefined` for an unmapped URL;
 * `isRead` marks GET and HEAD, which alone answer 304. An unreadable date is ignored; an unreadable entity tag (Joplin's)
 * matches nothing.
 */
export function evaluateConditions(
  headers: IncomingHttpHeaders,
  current: Validators | undefined,
  { isRead }: { readonly isRead: boolean },
): ConditionsResult {
  const ifMatch = headers['if-match'];
  const ifNoneMatch = headers['if-none-match'];
  if (ifMatch !== undefined) {
    if (!matchesEntityTag(ifMatch, current)) return 'failed';
  } else if (isModifiedSince(headers['if-unmodified-since'], current)) return 'failed';
  if (ifNoneMatch !== undefined) {
    if (matchesEntityTag(ifNoneMatch, current)) return isRead ? 'not-modified' : 'failed';
    return 'proceed';
  }
  const since = parseHttpDate(headers['if-modified-since']);
  const isDated = isRead && since !== undefined && current?.modifiedMs !== undefined;
  return isDated && seconds(current.modifiedMs) <= seconds(since) ? 'not-modified' : 'proceed';
}

/** Whether `If-Range` allows a partial answer (RFC 9110 §13.1.5). Finder sends a date, others an entity tag. */
export function ifRangeMatches(header: string | undefined, current: Validators): boolean {
  if (header === undefined) return true;
  if (header.includes('"')) return !/^\s*W\//.test(header) && matchesEntityTag(header, current);
  const date = parseHttpDate(header);
  return (
    date !== undefined && current.modifiedMs !== undefined && seconds(current.modifiedMs) === seconds(date)
  );
}

const QUOTED = /"([^"]*)"/g;

/** Whether a list of entity tags, or `*`, matches `current`. Ignores `W/`, which davfs2 strips from tags. */
export function matchesEntityTag(list: string, current: Validators | undefined): boolean {
  if (!current) return false;
  if (list.trim() === '*') return true;
  return [...list.matchAll(QUOTED)].some(([tag]) => isSameTag(tag, current.entityTag));
}

function isSameTag(tag: string, other: string | undefined): boolean {
  return other !== undefined && tag.replace(/^W\//, '') === other.replace(/^W\//, '');
}

/** Returns true for an unmapped URL: it has no representation that could be unmodified. */
function isModifiedSince(header: string | undefined, current: Validators | undefined): boolean {
  const date = parseHttpDate(header);
  if (date === undefined) return false;
  if (!current) return true;
  return current.modifiedMs !== undefined && seconds(current.modifiedMs) > seconds(date);
}

/** HTTP dates have a resolution of one second. */
function seconds(ms: number): number {
  return Math.floor(ms / 1000);
}
