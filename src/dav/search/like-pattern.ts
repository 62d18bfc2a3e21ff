import { DavError } from '../errors.ts';

const ANY = Symbol('any text');
const ONE = Symbol('one character');
type Part = string | typeof ANY | typeof ONE;

/**
 * A pattern of `DAV:like`: `%` stands for any text, `_` for one character, and `\` takes the meaning of what follows (RFC 5323
 * §5.12).
 */
export class LikePattern {
  readonly #parts: readonly Part[];
  /** Length of the shortest text that matches, in characters. */
  readonly #lengthMin: number;

  /** Throws `DavError` 400. */
  constructor(literal: string) {
    this.#parts = partsIn(literal);
    this.#lengthMin = this.#parts.filter((part) => part !== ANY).length;
  }

  /** Takes at most the product of the two lengths, whatever the pattern: a regular expression could take forever. */
  matches(whole: string): boolean {
    const text = [...whole];
    if (text.length < this.#lengthMin) return false;
    const parts = this.#parts;
    let [at, inPattern] = [0, 0];
    let [restart, restartAt] = [-1, 0];
    while (at < text.length) {
      const expected = parts[inPattern];
      if (expected === ANY) {
        inPattern += 1;
        [restart, restartAt] = [inPattern, at];
      } else if (expected !== undefined && (expected === ONE || expected === text[at])) {
        at += 1;
        inPattern += 1;
      } else if (restart >= 0) {
        restartAt += 1;
        [at, inPattern] = [restartAt, restart];
      } else return false;
    }
    return parts.slice(inPattern).every((expected) => expected === ANY);
  }
}

function partsIn(literal: string): readonly Part[] {
  const parts: Part[] = [];
  let isEscaped = false;
  for (const character of literal) {
    if (!isEscaped && character === '\\') {
      isEscaped = true;
      continue;
    }
    if (isEscaped) parts.push(character);
    else parts.push(character === '%' ? ANY : character === '_' ? ONE : character);
    isEscaped = false;
  }
  if (isEscaped) throw new DavError(400, 'the literal of DAV:like ends with the escape "\\"');
  return parts;
}
