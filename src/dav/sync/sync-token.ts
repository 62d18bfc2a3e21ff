import { createHash } from 'node:crypto';
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import type { FolderEntry } from '../../drive/files.ts';
import { keyOf, namesOf, type Path, PathError, pathOf } from '../../util/path.ts';
import { DAVGATE_NAMESPACE } from '../properties/property-names.ts';

export type SyncLevel = '1' | 'infinite';

/** An entry that only davgate has, as the client knows it. */
export interface KnownEntry {
  readonly path: Path;
  /** `revisionMark` of its revision. */
  readonly mark: string;
}

/** What a client knows of a folder: the content of its sync token. */
export interface SyncState {
  /** `undefined` in the token of a property, which is good for both levels. */
  readonly level: SyncLevel | undefined;
  /** The position in the change log up to which the client knows everything when it has all pages of this report. */
  readonly position: string;
  /** Only between two pages of one report. */
  readonly rest?: {
    /** The position at which the report began; `undefined` for the initial one. */
    readonly since: string | undefined;
    /** `orderOf` the last reported member. */
    readonly after: string;
    /** Folders that the next report has, with everything in them. */
    readonly again: readonly Path[];
  };
  /** By key. */
  readonly known: ReadonlyMap<string, KnownEntry>;
  /** Folders that the client does not know yet. The next report has them, and everything in them. */
  readonly again: readonly Path[];
}

/** Maximum number of entries that only davgate has in a followed folder: a token names each of them. */
export const UNLOGGED_MAX = 20_000;

/** Maximum number of folders to be reported again: a token names each of them. */
export const AGAIN_MAX = 1_000;

/** Entries of the last report may have come or gone since, so that a token names more. */
const KNOWN_MAX = 2 * UNLOGGED_MAX;

const START = `${DAVGATE_NAMESPACE}/sync/`;

/** Maximum size of the content of a token, in bytes. */
const CONTENT_BYTES_MAX = 8 * 1024 * 1024;

const MARK_LENGTH = 8;

type Fields = [
  folder: string,
  level: string,
  position: string,
  rest: [since: string | null, after: string, again: string[]] | null,
  known: [path: string, mark: string][],
  again: string[],
];

/** Returns the sync token of a state: a URI (RFC 6578 §4) that is good for this folder alone. */
export function syncTokenOf(folder: FolderEntry, state: SyncState): string {
  const { level = '', position, rest, known, again } = state;
  const below = (path: Path) => namesOf(path).slice(namesOf(folder.path).length).join('/');
  const fields: Fields = [
    markOf(folder),
    level,
    position,
    rest ? [rest.since ?? null, rest.after, rest.again.map(below)] : null,
    [...known.values()].map(({ path, mark }) => [below(path), mark]),
    again.map(below),
  ];
  return START + deflateRawSync(JSON.stringify(fields)).toString('base64url');
}

/**
 * Returns the state in a token; `undefined` for a token of another folder, and for any other text. A client can change a token:
 * it then gets wrong rows, at no more cost than with a token of davgate's.
 */
export function syncStateIn(folder: FolderEntry, token: string): SyncState | undefined {
  if (!token.startsWith(START)) return undefined;
  const fields = fieldsIn(token.slice(START.length));
  if (fields?.[0] !== markOf(folder)) return undefined;
  const [, level, position, rest, known, again] = fields;
  try {
    const at = (below: string) => pathOf([...namesOf(folder.path), ...below.split('/')]);
    const entries = known.map(([below, mark]) => ({ path: at(below), mark }));
    return {
      level: level === '1' || level === 'infinite' ? level : undefined,
      position,
      ...(rest && { rest: { since: rest[0] ?? undefined, after: rest[1], again: rest[2].map(at) } }),
      known: new Map(entries.map((entry) => [keyOf(entry.path), entry])),
      again: again.map(at),
    };
  } catch (error) {
    if (error instanceof PathError) return undefined;
    throw error;
  }
}

function fieldsIn(text: string): Fields | undefined {
  try {
    const bytes = inflateRawSync(Buffer.from(text, 'base64url'), { maxOutputLength: CONTENT_BYTES_MAX });
    const value: unknown = JSON.parse(bytes.toString());
    return isFields(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function isFields(value: unknown): value is Fields {
  if (!Array.isArray(value) || value.length !== 6) return false;
  const [folder, level, position, rest, known, again]: unknown[] = value;
  const isRest = rest === null || (Array.isArray(rest) && rest.length === 3);
  const [since, after, later]: unknown[] = Array.isArray(rest) ? rest : [null, '', []];
  const isPair = (pair: unknown) => Array.isArray(pair) && pair.length === 2 && pair.every(isText);
  return (
    [folder, level, position, after].every(isText) &&
    isRest &&
    (since === null || isText(since)) &&
    isList(later, AGAIN_MAX, isText) &&
    isList(known, KNOWN_MAX, isPair) &&
    isList(again, AGAIN_MAX, isText)
  );
}

function isList(value: unknown, max: number, isItem: (item: unknown) => boolean): boolean {
  return Array.isArray(value) && value.length <= max && value.every(isItem);
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}

/** A folder that is moved away and back, or replaced by another, is not the one that the client knows. */
function markOf({ path, id }: FolderEntry): string {
  return createHash('sha256')
    .update(`${keyOf(path)}\0${id}`)
    .digest('base64url')
    .slice(0, 2 * MARK_LENGTH);
}

/** Returns a short text that differs for different revisions. */
export function revisionMark(rev: string): string {
  return createHash('sha256').update(rev).digest('base64url').slice(0, MARK_LENGTH);
}
