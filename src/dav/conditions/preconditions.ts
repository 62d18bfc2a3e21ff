import type { IncomingHttpHeaders } from 'node:http';
import { FileError } from '../../drive/errors.ts';
import type { Entry, FileEntry } from '../../drive/files.ts';
import { keyOf, type Path, parentOf } from '../../util/path.ts';
import type { Context } from '../context.ts';
import { DavError } from '../errors.ts';
import {
  type IfHeader,
  matchesIfHeader,
  type NamedResources,
  namesTag,
  parseIfHeader,
  type ResourceState,
  tokensIn,
} from './if-header.ts';

/** The consequences of a request's conditions, once met, for the write. */
export interface MetConditions {
  /** The lock tokens that the request submits. */
  readonly tokens: ReadonlySet<string>;
  /** The request depends on the current content: the write must replace exactly that revision. */
  readonly pinsRevision: boolean;
  /** `pinsRevision` for the destination of COPY and MOVE. */
  readonly pinsDestination: boolean;
}

/** The destination of COPY and MOVE, and what is there now. */
export interface Destination {
  readonly path: Path;
  readonly entry: Entry | undefined;
}

/**
 * Evaluates the `If` header (RFC 4918 §10.4) and HTTP's conditional headers against `entry`, the resource at the
 * request's path. Throws `DavError` 400 for an unreadable `If`, 412 when a condition is not met.
 */
export async function checkConditions(
  context: Context,
  entry: Entry | undefined,
  destination?: Destination,
): Promise<MetConditions> {
  const { headers } = context.request;
  const ifHeader = headers['if'] === undefined ? undefined : await checkIfHeader(context, entry, destination);
  if (evaluateConditions(headers, entry && validatorsIn(entry), { isRead: false }) === 'failed')
    throw conditionsFailed();
  const pinsByHttp = ['if-match', 'if-unmodified-since'].some((name) => isSpecific(headers[name]));
  const resources = resourcesOf(context, destination);
  const pins = (path: Path) => ifHeader !== undefined && namesTag(ifHeader, resources, path);
  return {
    tokens: ifHeader ? tokensIn(ifHeader) : new Set(),
    pinsRevision: pinsByHttp || pins(context.path),
    pinsDestination: destination !== undefined && pins(destination.path),
  };
}

/** Evaluates the `If` header alone. Throws `DavError` 400 or 412. */
export async function checkIfHeader(
  context: Context,
  entry: Entry | undefined,
  destination?: Destination,
): Promise<IfHeader | undefined> {
  const header = context.request.headers['if'];
  if (typeof header !== 'string') return undefined;
  const parsed = parseIfHeader(header);
  const resources = resourcesOf(context, destination);
  const known = [{ path: context.path, entry }, ...(destination ? [destination] : [])];
  if (await matchesIfHeader(parsed, resources, (path) => loadState(context, path, known))) return parsed;
  throw new DavError(
    412,
    'none of the lists in the If header matches the current state; fetch it and try again',
  );
}

function resourcesOf({ path, exchange }: Context, destination: Destination | undefined): NamedResources {
  return { path, destination: destination?.path, prefix: exchange.prefix };
}

export function conditionsFailed(): DavError {
  return new DavError(
    412,
    "the resource does not meet the request's conditional headers; it may have changed: fetch it and try again",
  );
}

/** Throws `FileError` `parent-missing` (409) unless the parent of `path` is a folder. */
export async function requireParent({ drive, exchange }: Context, path: Path): Promise<void> {
  const folder = parentOf(path);
  const parent = await drive.files.stat(folder, exchange.signal);
  if (parent?.kind !== 'folder')
    throw new FileError('parent-missing', `there is no folder ${folder}; create it first`);
}

/** `*` matches every revision. */
function isSpecific(header: string | string[] | undefined): boolean {
  return header !== undefined && String(header).trim() !== '*';
}

function validatorsIn(entry: Entry): Validators {
  return entry.kind === 'file' ? validatorsOf(entry) : {};
}

/** Loads the state of the resource at `path`, whose entry may be among the `known` ones. */
async function loadState(
  { drive, clock, exchange }: Context,
  path: Path,
  known: readonly Destination[],
): Promise<ResourceState> {
  const loaded = known.find((one) => keyOf(one.path) === keyOf(path));
  const current = loaded ? loaded.entry : await drive.files.stat(path, exchange.signal);
  const locks = await drive.state.locks.covering(clock.now(), path);
  return {
    tokens: new Set(locks.map(({ token }) => token)),
    hasTag: (tag) => matchesEntityTag(tag, current && validatorsIn(current)),
  };
}

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

type ConditionsResult = 'proceed' | 'not-modified' | 'failed';

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

/**
 * Whether `If-Range` allows a partial answer (RFC 9110 §13.1.5). Finder sends a date, others an entity tag. A date counts only if
 * nobody has set it and its second is over (§8.8.2.2): clients may give new content the time of the old one.
 */
export function ifRangeMatches(header: string | undefined, file: FileEntry, nowMs: number): boolean {
  if (header === undefined) return true;
  if (header.includes('"')) return !/^\s*W\//.test(header) && matchesEntityTag(header, validatorsOf(file));
  const date = parseHttpDate(header);
  const committed = seconds(file.committedMs);
  const isStrong = seconds(file.modifiedMs) === committed && committed < seconds(nowMs);
  return isStrong && date !== undefined && seconds(date) === committed;
}

const QUOTED = /"([^"]*)"/g;

/** Whether a list of entity tags, or `*`, matches `current`. Ignores `W/`, which davfs2 strips from tags. */
function matchesEntityTag(list: string, current: Validators | undefined): boolean {
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

const MONTHS = 'jan feb mar apr may jun jul aug sep oct nov dec'.split(' ');
const IMF_FIXDATE = /^\w{3}, (\d{2}) (\w{3}) (\d{4}) (\d{2}):(\d{2}):(\d{2}) GMT$/i;
const RFC_850 = /^\w{6,9}, (\d{2})-(\w{3})-(\d{2}) (\d{2}):(\d{2}):(\d{2}) GMT$/i;
const ASCTIME = /^\w{3} (\w{3}) ([ \d]\d) (\d{2}):(\d{2}):(\d{2}) (\d{4})$/i;

/** Parses an HTTP date in any of its three forms (RFC 9110 §5.6.7), to ms since 1970; `undefined` for other text. */
export function parseHttpDate(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const trimmed = text.trim();
  const asctime = ASCTIME.exec(trimmed);
  const [, day, month, year, hour, minute, second] = asctime
    ? [asctime[0], asctime[2], asctime[1], asctime[6], asctime[3], asctime[4], asctime[5]]
    : (IMF_FIXDATE.exec(trimmed) ?? RFC_850.exec(trimmed) ?? []);
  const index = MONTHS.indexOf(String(month).toLowerCase());
  if (index < 0) return undefined;
  return Date.UTC(fullYear(Number(year)), index, Number(day), Number(hour), Number(minute), Number(second));
}

/** Years of two digits are 1970 to 2069, as in POSIX `strptime`. */
function fullYear(year: number): number {
  if (year >= 100) return year;
  return year < 70 ? 2000 + year : 1900 + year;
}

/** Formats ms since 1970 as an HTTP date. */
export function httpDate(ms: number): string {
  return new Date(ms).toUTCString();
}
