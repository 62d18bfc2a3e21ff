import { FileError } from '../../drive/errors.ts';
import type { Entry } from '../../drive/files.ts';
import { keyOf, type Path, parentOf } from '../../util/path.ts';
import type { Context } from '../context.ts';
import { DavError } from '../errors.ts';
import { parseResourceUrl } from '../resource-url.ts';
import { type Condition, type IfHeader, type IfList, parseIfHeader, tokensIn } from './if-header.ts';
import { evaluateConditions, matchesEntityTag, type Validators, validatorsOf } from './validators.ts';

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

/** Maximum number of resources in an `If` header. Each costs a lookup; the longest real headers name a dozen. */
const RESOURCES_MAX = 64;

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
  const ifHeader = await checkIfHeader(context, entry, destination);
  if (evaluateConditions(headers, entry && validatorsIn(entry), { isRead: false }) === 'failed')
    throw conditionsFailed();
  const pinsByHttp = ['if-match', 'if-unmodified-since'].some((name) => isSpecific(headers[name]));
  const pins = (path: Path) => ifHeader !== undefined && namesTag(context, ifHeader, destination, path);
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
  if (await matchesIfHeader(context, parsed, entry, destination)) return parsed;
  throw new DavError(
    412,
    'none of the lists in the If header matches the current state; fetch it and try again',
  );
}

export function conditionsFailed(): DavError {
  return new DavError(
    412,
    "the resource does not meet the request's conditional headers; it may have changed: fetch it and try again",
  );
}

/** Throws `FileError` `parent-missing` (409) unless the parent of `path` is a folder. */
export async function requireParent({ drive, signal }: Context, path: Path): Promise<void> {
  const folder = parentOf(path);
  const parent = await drive.files.stat(folder, signal);
  if (parent?.kind !== 'folder')
    throw new FileError('parent-missing', `there is no folder ${folder}; create it first`);
}

/** `*` matches every revision. */
function isSpecific(header: string | string[] | undefined): boolean {
  return header !== undefined && String(header).trim() !== '*';
}

/** Whether a list about `path` contains an entity tag. */
function namesTag(
  context: Context,
  header: IfHeader,
  destination: Destination | undefined,
  path: Path,
): boolean {
  const isAbout = (list: IfList) =>
    pathsOf(list, context.path, destination).some((named) => keyOf(named) === keyOf(path));
  const hasTag = ({ conditions }: IfList) => conditions.some(({ kind, not }) => kind === 'tag' && !not);
  return header.some((list) => hasTag(list) && isAbout(list));
}

function validatorsIn(entry: Entry): Validators {
  return entry.kind === 'file' ? validatorsOf(entry) : {};
}

/** The state of a resource that the conditions of an `If` list are compared with. */
interface ResourceState {
  readonly tokens: ReadonlySet<string>;
  readonly validators: Validators | undefined;
}

async function matchesIfHeader(
  context: Context,
  header: IfHeader,
  entry: Entry | undefined,
  destination: Destination | undefined,
): Promise<boolean> {
  const states = new Map<string, Promise<ResourceState>>();
  const stateOf = (path: Path): Promise<ResourceState> => {
    const key = keyOf(path);
    const known = states.get(key) ?? loadState(context, path, entry, destination);
    if (states.size >= RESOURCES_MAX)
      throw new DavError(400, `the If header names more than ${RESOURCES_MAX} resources`);
    states.set(key, known);
    return known;
  };
  for (const list of header) {
    const paths = pathsOf(list, context.path, destination);
    for (const path of paths) if (conditionsMet(list.conditions, await stateOf(path))) return true;
    if (paths.length === 0 && conditionsMet(list.conditions, UNMAPPED)) return true;
  }
  return false;
}

const UNMAPPED: ResourceState = { tokens: new Set(), validators: undefined };

/**
 * Returns the resources that a list applies to. An untagged list applies to the Request-URI (RFC 4918 §10.4.2), but
 * Finder puts the token of its lock on the destination there: a list of tokens may match the destination too.
 */
function pathsOf(
  { resource, conditions }: IfList,
  own: Path,
  destination: Destination | undefined,
): readonly Path[] {
  if (resource === undefined) {
    const isTokenList = conditions.every(({ kind, not }) => kind === 'token' && !not);
    return destination !== undefined && isTokenList ? [own, destination.path] : [own];
  }
  try {
    return [parseResourceUrl(resource).path];
  } catch (error) {
    // Not a URL of this drive: none of its locks and tags match.
    if (error instanceof DavError) return [];
    throw error;
  }
}

async function loadState(
  context: Context,
  path: Path,
  entry: Entry | undefined,
  destination: Destination | undefined,
): Promise<ResourceState> {
  const { drive, clock, signal } = context;
  const loaded = [{ path: context.path, entry }, ...(destination ? [destination] : [])];
  const known = loaded.find((one) => keyOf(one.path) === keyOf(path));
  const current = known ? known.entry : await drive.files.stat(path, signal);
  const locks = await drive.state.locks.covering(clock.now(), path);
  return {
    tokens: new Set(locks.map(({ token }) => token)),
    validators: current && validatorsIn(current),
  };
}

function conditionsMet(conditions: readonly Condition[], state: ResourceState): boolean {
  return conditions.every(({ not, kind, value }) => {
    const isMatch = kind === 'token' ? state.tokens.has(value) : matchesEntityTag(value, state.validators);
    return isMatch !== not;
  });
}
