import type { Entry } from '../../drive/files.ts';
import { keyOf, type Path } from '../../util/path.ts';
import { DavError } from '../errors.ts';
import type { Context } from '../method.ts';
import { parseTarget } from '../target.ts';
import { evaluate, matches, type Validators, validatorsOf } from './conditions.ts';
import { type Condition, type IfHeader, type IfList, parseIfHeader, tokensIn } from './if-header.ts';

/** What a request's conditions came to, once they hold. */
export interface Conditions {
  /** The lock tokens that the request submits. */
  readonly tokens: ReadonlySet<string>;
  /** It depends on the content that is there now: a write must replace exactly that revision. */
  readonly pinsRevision: boolean;
  /** Likewise of what is at the destination of COPY and MOVE. */
  readonly pinsDestination: boolean;
}

/** Where COPY and MOVE go, and what is there now. */
export interface Destination {
  readonly path: Path;
  readonly entry: Entry | undefined;
}

/** Each costs a question to the drive; the longest real headers name a dozen. */
const RESOURCES_MAX = 64;

/**
 * Holds the `If` header (RFC 4918 §10.4) and the conditional headers of HTTP against what is at the request's
 * path now, `entry`. `destination`: of COPY and MOVE. Throws `DavError` 400 for an `If` that cannot be read, 412 when a
 * condition does not hold.
 */
export async function checkConditions(
  context: Context,
  entry: Entry | undefined,
  destination?: Destination,
): Promise<Conditions> {
  const { headers } = context.request;
  const parsed = await checkIfHeader(context, entry, destination);
  if (evaluate(headers, entry && validators(entry), false) === 'failed')
    throw new DavError(412, 'it has changed, or is not as the conditional headers of the request say');
  const pinsHere = ['if-match', 'if-unmodified-since'].some((name) => isNarrow(headers[name]));
  return {
    tokens: parsed ? tokensIn(parsed) : new Set(),
    pinsRevision: pinsHere || (parsed !== undefined && namesTag(context, parsed, destination, context.path)),
    pinsDestination:
      parsed !== undefined &&
      destination !== undefined &&
      namesTag(context, parsed, destination, destination.path),
  };
}

/** The `If` header alone. Throws `DavError` 400 or 412. */
export async function checkIfHeader(
  context: Context,
  entry: Entry | undefined,
  destination?: Destination,
): Promise<IfHeader | undefined> {
  const header = context.request.headers['if'];
  if (typeof header !== 'string') return undefined;
  const parsed = parseIfHeader(header);
  if (await ifHeaderHolds(context, parsed, entry, destination)) return parsed;
  throw new DavError(412, 'the If header does not hold: no list of it is true of the resource as it is now');
}

/** `*` holds for each revision. */
function isNarrow(header: string | string[] | undefined): boolean {
  return header !== undefined && String(header).trim() !== '*';
}

/** Whether a list about `path` names an entity tag. */
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

function validators(entry: Entry): Validators {
  return entry.kind === 'file' ? validatorsOf(entry) : {};
}

/** What conditions are held against. */
interface ResourceState {
  readonly tokens: ReadonlySet<string>;
  readonly validators: Validators | undefined;
}

async function ifHeaderHolds(
  context: Context,
  header: IfHeader,
  entry: Entry | undefined,
  destination: Destination | undefined,
): Promise<boolean> {
  const states = new Map<string, Promise<ResourceState>>();
  const stateOf = (path: Path): Promise<ResourceState> => {
    const key = keyOf(path);
    const known = states.get(key) ?? askState(context, path, entry, destination);
    if (states.size >= RESOURCES_MAX)
      throw new DavError(400, `the header If names more than ${RESOURCES_MAX} resources`);
    states.set(key, known);
    return known;
  };
  for (const list of header) {
    const paths = pathsOf(list, context.path, destination);
    for (const path of paths) if (holds(list.conditions, await stateOf(path))) return true;
    if (paths.length === 0 && holds(list.conditions, NOWHERE)) return true;
  }
  return false;
}

const NOWHERE: ResourceState = { tokens: new Set(), validators: undefined };

/**
 * The resources that a list is about. Without a tag that is the Request-URI's alone (RFC 4918 §10.4.2); but Finder puts
 * the token of its lock on the destination into an untagged list, so a list of tokens may be true of the destination too.
 */
function pathsOf(
  { resource, conditions }: IfList,
  own: Path,
  destination: Destination | undefined,
): readonly Path[] {
  if (resource === undefined) {
    const isOfTokens = conditions.every(({ kind, not }) => kind === 'token' && !not);
    return destination !== undefined && isOfTokens ? [own, destination.path] : [own];
  }
  try {
    return [parseTarget(resource).path];
  } catch (error) {
    // Whatever it names, it is not here: no lock and no tag of it matches.
    if (error instanceof DavError) return [];
    throw error;
  }
}

async function askState(
  context: Context,
  path: Path,
  entry: Entry | undefined,
  destination: Destination | undefined,
): Promise<ResourceState> {
  const { drive, clock, signal } = context;
  const looked = [{ path: context.path, entry }, ...(destination ? [destination] : [])];
  const known = looked.find((one) => keyOf(one.path) === keyOf(path));
  const found = known ? known.entry : await drive.files.stat(path, signal);
  const locks = await drive.state.locks.covering(clock.now(), path);
  return {
    tokens: new Set(locks.map(({ token }) => token)),
    validators: found && validators(found),
  };
}

function holds(conditions: readonly Condition[], state: ResourceState): boolean {
  return conditions.every(({ not, kind, value }) => {
    const isSo = kind === 'token' ? state.tokens.has(value) : matches(value, state.validators);
    return isSo !== not;
  });
}
