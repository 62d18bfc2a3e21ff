import type { BasePath } from '../../util/base-path.ts';
import { keyOf, type Path } from '../../util/path.ts';
import { DavError } from '../errors.ts';
import { parseResourceUrl } from '../resource-url.ts';

/** One condition on the state of a resource, negated by `not`. */
export interface Condition {
  readonly not: boolean;
  /** `token`: a state token without its angle brackets. `tag`: an entity tag as in `ETag`, `''` if unreadable. */
  readonly kind: 'token' | 'tag';
  readonly value: string;
}

/** Conditions that must all be met. */
export interface IfList {
  /** The URL of a tagged list; `undefined` for an untagged one, which is about the Request-URI. */
  readonly resource: string | undefined;
  readonly conditions: readonly Condition[];
}

/** Matches when one of its lists does. */
export type IfHeader = readonly IfList[];

/** Maximum number of conditions. Each costs a comparison; the longest real headers have a dozen. */
const CONDITIONS_MAX = 500;

/** The lexical elements of the header (RFC 4918 §10.4.2). */
const LEXEMES = {
  /** Node joins several header lines with a comma. */
  space: /[\s,]+/y,
  open: /\(\s*/y,
  close: /\s*\)/y,
  not: /not(?=[\s<[])\s*/iy,
  url: /<([^<>\s]+)>\s*/y,
  tag: /\[\s*((?:W\/)?"[^"]*")\s*\]\s*/y,
  /** An unquoted tag is no error, but matches nothing. */
  junk: /\[[^\][]*\]\s*/y,
};

/**
 * Parses an `If` header (RFC 4918 §10.4). Accepts untagged lists before tagged ones, as when two lines were joined.
 * Throws `DavError` 400 with the position of the error.
 */
export function parseIfHeader(text: string): IfHeader {
  const scanner = new Scanner(text);
  const lists: IfList[] = [];
  let resource: string | undefined;
  let count = 0;
  for (scanner.take('space'); !scanner.atEnd; scanner.take('space')) {
    const url = scanner.take('url');
    if (url !== undefined) {
      resource = url;
      scanner.take('space');
    }
    const conditions = readList(scanner);
    count += conditions.length;
    if (count > CONDITIONS_MAX)
      throw new DavError(400, `the If header has more than ${CONDITIONS_MAX} conditions`);
    lists.push({ resource, conditions });
  }
  if (lists.length === 0) throw new DavError(400, 'the If header is empty');
  return lists;
}

/** Returns all state tokens in `header`: each submits its lock token, wherever it stands (§10.4.1). */
export function tokensIn(header: IfHeader): Set<string> {
  return new Set(
    header.flatMap(({ conditions }) =>
      conditions.filter(({ kind }) => kind === 'token').map(({ value }) => value),
    ),
  );
}

/** The resources that a request names outside its `If` header. */
export interface NamedResources {
  readonly path: Path;
  /** The destination of COPY and MOVE. */
  readonly destination: Path | undefined;
  /** The path that the client sees above the drive. */
  readonly prefix: BasePath;
}

/** The state of a resource that the conditions of a list are compared with. */
export interface ResourceState {
  /** Tokens of the locks that protect it. */
  readonly tokens: ReadonlySet<string>;
  /** Whether this is its entity tag. */
  readonly hasTag: (tag: string) => boolean;
}

/** Maximum number of resources in an `If` header. Each costs a lookup; the longest real headers name a dozen. */
const RESOURCES_MAX = 64;

const UNMAPPED: ResourceState = { tokens: new Set(), hasTag: () => false };

/** Whether one of the lists matches. Calls `load` once for each resource that they name. Throws `DavError` 400. */
export async function matchesIfHeader(
  header: IfHeader,
  resources: NamedResources,
  load: (path: Path) => Promise<ResourceState>,
): Promise<boolean> {
  const states = new Map<string, Promise<ResourceState>>();
  const stateOf = (path: Path): Promise<ResourceState> => {
    const key = keyOf(path);
    const known = states.get(key);
    if (known !== undefined) return known;
    if (states.size === RESOURCES_MAX)
      throw new DavError(400, `the If header names more than ${RESOURCES_MAX} resources`);
    const loaded = load(path);
    states.set(key, loaded);
    return loaded;
  };
  for (const list of header) {
    const paths = pathsOf(list, resources);
    for (const path of paths) if (conditionsMet(list.conditions, await stateOf(path))) return true;
    if (paths.length === 0 && conditionsMet(list.conditions, UNMAPPED)) return true;
  }
  return false;
}

/** Whether a list about `path` contains an entity tag. */
export function namesTag(header: IfHeader, resources: NamedResources, path: Path): boolean {
  const isAbout = (list: IfList) => pathsOf(list, resources).some((named) => keyOf(named) === keyOf(path));
  const hasTag = ({ conditions }: IfList) => conditions.some(({ kind, not }) => kind === 'tag' && !not);
  return header.some((list) => hasTag(list) && isAbout(list));
}

/**
 * Returns the resources that a list applies to. An untagged list applies to the Request-URI (RFC 4918 §10.4.2), but
 * Finder puts the token of its lock on the destination there: a list of tokens may match the destination too.
 */
function pathsOf(
  { resource, conditions }: IfList,
  { path, destination, prefix }: NamedResources,
): readonly Path[] {
  if (resource === undefined) {
    const isTokenList = conditions.every(({ kind, not }) => kind === 'token' && !not);
    return destination !== undefined && isTokenList ? [path, destination] : [path];
  }
  try {
    return [parseResourceUrl(resource, prefix).path];
  } catch (error) {
    // Not a URL of this drive: none of its locks and tags match.
    if (error instanceof DavError) return [];
    throw error;
  }
}

function conditionsMet(conditions: readonly Condition[], state: ResourceState): boolean {
  return conditions.every(({ not, kind, value }) => {
    const isMatch = kind === 'token' ? state.tokens.has(value) : state.hasTag(value);
    return isMatch !== not;
  });
}

function readList(scanner: Scanner): Condition[] {
  if (scanner.take('open') === undefined) throw scanner.error('a "(" is missing');
  const conditions: Condition[] = [];
  while (scanner.take('close') === undefined) conditions.push(readCondition(scanner));
  if (conditions.length === 0) throw scanner.error('a list is empty');
  return conditions;
}

function readCondition(scanner: Scanner): Condition {
  const not = scanner.take('not') !== undefined;
  const token = scanner.take('url');
  if (token !== undefined) return { not, kind: 'token', value: token };
  const tag = scanner.take('tag') ?? scanner.take('junk');
  if (tag !== undefined) return { not, kind: 'tag', value: tag };
  throw scanner.error('a <token> or an ["entity tag"] is missing');
}

class Scanner {
  #at = 0;

  constructor(private readonly text: string) {}

  get atEnd(): boolean {
    return this.#at >= this.text.length;
  }

  /** Consumes a lexeme and returns its content; `undefined` when something else comes next. */
  take(lexeme: keyof typeof LEXEMES): string | undefined {
    const pattern = LEXEMES[lexeme];
    pattern.lastIndex = this.#at;
    const match = pattern.exec(this.text);
    if (!match) return undefined;
    this.#at = pattern.lastIndex;
    return match[1] ?? '';
  }

  error(problem: string): DavError {
    return new DavError(400, `the If header is malformed: ${problem} at character ${this.#at + 1}`);
  }
}
