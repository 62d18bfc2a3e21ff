import { DavError } from '../errors.ts';

/** One thing that is to hold, or with `not` is not to hold, of a resource. */
export interface Condition {
  readonly not: boolean;
  /**
   * `token`: a state token without its angle brackets. `tag`: an entity tag as it stands in `ETag`, `''` for
   * what is none.
   */
  readonly kind: 'token' | 'tag';
  readonly value: string;
}

/** Conditions that are to hold together. */
export interface IfList {
  /** The resource's URL; `undefined` for the one that the request names. */
  readonly resource: string | undefined;
  readonly conditions: readonly Condition[];
}

/** One list has to hold. */
export type IfHeader = readonly IfList[];

/** Each condition costs a comparison; the longest real headers have a dozen. */
const CONDITIONS_MAX = 500;

/** What stands at the start of the rest of the header: one of RFC 4918 §10.4.2's pieces. */
const PIECES = {
  /** Several header lines reach us joined by a comma. */
  space: /[\s,]+/y,
  open: /\(\s*/y,
  close: /\s*\)/y,
  not: /not(?=[\s<[])\s*/iy,
  url: /<([^<>\s]+)>\s*/y,
  tag: /\[\s*((?:W\/)?"[^"]*")\s*\]\s*/y,
  /** A tag without its quotes is no error, and nobody's. */
  junk: /\[[^\][]*\]\s*/y,
};

/**
 * The complete `If` header (RFC 4918 §10.4). Tagged and untagged lists may follow each other, as when two
 * lines were joined. Throws `DavError` 400 and says where it ends to be understood.
 */
export function parseIfHeader(text: string): IfHeader {
  const reader = new Reader(text);
  const lists: IfList[] = [];
  let resource: string | undefined;
  let count = 0;
  for (reader.take('space'); !reader.atEnd; reader.take('space')) {
    const url = reader.take('url');
    if (url !== undefined) {
      resource = url;
      reader.take('space');
    }
    const conditions = readList(reader);
    count += conditions.length;
    if (count > CONDITIONS_MAX)
      throw new DavError(400, `the header If has more than ${CONDITIONS_MAX} conditions`);
    lists.push({ resource, conditions });
  }
  if (lists.length === 0) throw new DavError(400, 'the header If is empty');
  return lists;
}

/** All state tokens in `header`: a lock's token is submitted wherever it stands (§10.4.1). */
export function tokensIn(header: IfHeader): Set<string> {
  return new Set(
    header.flatMap(({ conditions }) =>
      conditions.filter(({ kind }) => kind === 'token').map(({ value }) => value),
    ),
  );
}

function readList(reader: Reader): Condition[] {
  if (reader.take('open') === undefined) throw reader.error('a "(" is missing');
  const conditions: Condition[] = [];
  while (reader.take('close') === undefined) conditions.push(readCondition(reader));
  if (conditions.length === 0) throw reader.error('a list is empty');
  return conditions;
}

function readCondition(reader: Reader): Condition {
  const not = reader.take('not') !== undefined;
  const token = reader.take('url');
  if (token !== undefined) return { not, kind: 'token', value: token };
  const tag = reader.take('tag') ?? reader.take('junk');
  if (tag !== undefined) return { not, kind: 'tag', value: tag };
  throw reader.error('a <token> or an ["entity tag"] is missing');
}

class Reader {
  #at = 0;

  constructor(private readonly text: string) {}

  get atEnd(): boolean {
    return this.#at >= this.text.length;
  }

  /** Goes past a piece and returns what it holds; `undefined` when something else comes here. */
  take(piece: keyof typeof PIECES): string | undefined {
    const pattern = PIECES[piece];
    pattern.lastIndex = this.#at;
    const match = pattern.exec(this.text);
    if (!match) return undefined;
    this.#at = pattern.lastIndex;
    return match[1] ?? '';
  }

  error(problem: string): DavError {
    return new DavError(400, `the header If cannot be read: ${problem} at character ${this.#at + 1}`);
  }
}
