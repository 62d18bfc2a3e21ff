import { createHash } from 'node:crypto';
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import type { ChangeLog, FolderEntry } from '../../drive/files.ts';
import { keyOf, namesOf, type Path, pathOf } from '../../util/path.ts';
import { DavError } from '../errors.ts';
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

/** Maximum length of a token: the body of each report brings it back. Enough for `UNLOGGED_MAX` names of common length. */
export const TOKEN_LENGTH_MAX = 3 * 1024 * 1024;

/** Maximum number of folders to be reported again: a token names each of them. */
export const AGAIN_MAX = 1_000;

/** With the version of what follows: another form of the fields takes the next number. */
const START = `${DAVGATE_NAMESPACE}/sync/2/`;

const MARK_LENGTH = 8;

type Fields = [
  folder: string,
  level: SyncLevel | '',
  position: string,
  rest: [since: string | null, after: string, again: string[]] | null,
  known: [path: string, mark: string][],
  again: string[],
];

/**
 * Returns the sync token of a state: a URI (RFC 6578 §4) that is good for this folder alone. A client cannot change it. Throws
 * `DavError` 507 if it is too long.
 */
export async function syncTokenOf(log: ChangeLog, folder: FolderEntry, state: SyncState): Promise<string> {
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
  const token = START + (await log.seal(folder.path, deflateRawSync(JSON.stringify(fields))));
  if (token.length > TOKEN_LENGTH_MAX)
    throw tooMuchToKnow(
      folder.path,
      `${known.size} files of desktop systems and pending files with long paths`,
    );
  return token;
}

/** Returns the state in a token; `undefined` for a token of another folder, and for any text that is no token of davgate's. */
export async function syncStateIn(
  log: ChangeLog,
  folder: FolderEntry,
  token: string,
): Promise<SyncState | undefined> {
  if (!token.startsWith(START)) return undefined;
  const content = await log.unseal(folder.path, token.slice(START.length));
  if (!content) return undefined;
  const fields: Fields = JSON.parse(inflateRawSync(content).toString());
  const [mark, level, position, rest, known, again] = fields;
  if (mark !== markOf(folder)) return undefined;
  const at = (below: string) => pathOf([...namesOf(folder.path), ...below.split('/')]);
  const entries = known.map(([below, entryMark]) => ({ path: at(below), mark: entryMark }));
  return {
    level: level === '' ? undefined : level,
    position,
    ...(rest && { rest: { since: rest[0] ?? undefined, after: rest[1], again: rest[2].map(at) } }),
    known: new Map(entries.map((entry) => [keyOf(entry.path), entry])),
    again: again.map(at),
  };
}

/** Returns the refusal to report the changes of a folder in which a client would have to know `what`. */
export function tooMuchToKnow(folder: Path, what: string): DavError {
  return new DavError(
    507,
    `${folder} has ${what} below it, too many for sync-collection. Use PROPFIND, or follow the folders in it`,
    { precondition: 'number-of-matches-within-limits' },
  );
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
