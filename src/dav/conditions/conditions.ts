import type { IncomingHttpHeaders } from 'node:http';
import type { FileEntry } from '../../drive/files.ts';
import { parseHttpDate } from '../headers.ts';

/** What conditional headers are compared with: the representation that a request would read or replace. */
export interface Validators {
  /** As in `ETag`; absent where there is none, as of a folder. */
  readonly entityTag?: string;
  /** Milliseconds since 1970. */
  readonly modifiedMs?: number;
}

/** A strong tag: the revision names the content. */
export function entityTagOf({ rev }: FileEntry): string {
  return `"${rev}"`;
}

export function validatorsOf(entry: FileEntry): Validators {
  return { entityTag: entityTagOf(entry), modifiedMs: entry.modifiedMs };
}

/** `reading`: GET and HEAD, which may be answered by "you have it already". */
export type Verdict = 'proceed' | 'not-modified' | 'failed';

/**
 * The conditional headers in the order of RFC 9110 §13.2.2; `current` is `undefined` where nothing is. A
 * date that cannot be read is no condition; a tag that cannot be read, as Joplin's, is nobody's.
 */
export function evaluate(
  headers: IncomingHttpHeaders,
  current: Validators | undefined,
  reading: boolean,
): Verdict {
  const ifMatch = headers['if-match'];
  const ifNoneMatch = headers['if-none-match'];
  if (ifMatch !== undefined) {
    if (!matches(ifMatch, current)) return 'failed';
  } else if (isChangedSince(headers['if-unmodified-since'], current)) return 'failed';
  if (ifNoneMatch !== undefined) {
    if (matches(ifNoneMatch, current)) return reading ? 'not-modified' : 'failed';
    return 'proceed';
  }
  const since = parseHttpDate(headers['if-modified-since']);
  const isOld = reading && since !== undefined && current?.modifiedMs !== undefined;
  return isOld && seconds(current.modifiedMs) <= seconds(since) ? 'not-modified' : 'proceed';
}

/** Whether a range may be sent of what is there now (RFC 9110 §13.1.5): Finder names a date, others a tag. */
export function ifRangeHolds(header: string | undefined, current: Validators): boolean {
  if (header === undefined) return true;
  if (header.includes('"')) return !/^\s*W\//.test(header) && matches(header, current);
  const date = parseHttpDate(header);
  return (
    date !== undefined && current.modifiedMs !== undefined && seconds(current.modifiedMs) === seconds(date)
  );
}

const QUOTED = /"([^"]*)"/g;

/** Whether a list of tags, or `*`, names `current`. A `W/` is not looked at: davfs2 takes it away itself. */
export function matches(list: string, current: Validators | undefined): boolean {
  if (!current) return false;
  if (list.trim() === '*') return true;
  return [...list.matchAll(QUOTED)].some(([tag]) => isSameTag(tag, current.entityTag));
}

function isSameTag(tag: string, other: string | undefined): boolean {
  return other !== undefined && tag.replace(/^W\//, '') === other.replace(/^W\//, '');
}

/** Where nothing is, nothing was left unmodified. */
function isChangedSince(header: string | undefined, current: Validators | undefined): boolean {
  const date = parseHttpDate(header);
  if (date === undefined) return false;
  if (!current) return true;
  return current.modifiedMs !== undefined && seconds(current.modifiedMs) > seconds(date);
}

/** HTTP's dates have whole seconds. */
function seconds(ms: number): number {
  return Math.floor(ms / 1000);
}
