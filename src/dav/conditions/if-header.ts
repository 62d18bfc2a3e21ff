import { DavError } from '../errors.ts';

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
