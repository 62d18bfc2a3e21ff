import { foldName, PathError } from '../util/path.ts';

/** Maximum length of a name at the service, in UTF-16 units (service-api.md §9.1). */
const LENGTH_MAX = 255;

/** Maximum length of a part of a name, decomposed, without its marks: with them it is a name that the service takes. */
const PART_LENGTH_MAX = 250;

/** Maximum length of what is not cut, decomposed: a name with more is refused by the service. */
const UNCUT_LENGTH_MAX = 64;

/** Each part but the last is longer than this, decomposed. */
const SHORTEST_PART = PART_LENGTH_MAX - UNCUT_LENGTH_MAX;

/** Maximum length of a decomposed character. */
const DECOMPOSED_LENGTH_MAX = 4;

/** Ends the name of a folder with a part of a name, and begins the name of what is in it: the next part. */
const MARK = '\u2417';

/** Marks a mark at the end of a name that stands for itself. */
const QUOTE = '\u201b';

/** What is not cut: a character with its combining marks, which would not be the same apart, and the quotes before it. */
const UNCUT = /\u201b*\P{M}\p{M}*|\p{M}+/gu;

/** The mark at the end of a name, and all quotes before it: each is looked at once, however many there are. */
const QUOTED_MARK = /(?<!\u201b)\u201b*\u2417$/;

/**
 * Returns the names at the service of a name that may be longer than the service takes: folders with all parts but the last,
 * and an entry with the last one, each in the one before. The parts of two names differ by letter case only when the names
 * do, so lengths are those of decomposed names, in which case makes no difference.
 */
export function partsOf(name: string): readonly string[] {
  const quoted = withQuote(name);
  // A few letters are shorter in lower case, and a name must be cut in both cases or in none.
  if (quoted.length <= LENGTH_MAX || foldName(quoted).length <= LENGTH_MAX) return [quoted];
  const parts = [''];
  let lengthOfLast = 0;
  for (const [piece] of quoted.matchAll(UNCUT)) {
    const length = lengthOf(piece);
    if (length > UNCUT_LENGTH_MAX) return [quoted];
    if (lengthOfLast + length > PART_LENGTH_MAX) {
      parts[parts.length - 1] += MARK;
      parts.push(MARK);
      lengthOfLast = 0;
    }
    parts[parts.length - 1] += piece;
    lengthOfLast += length;
  }
  return parts;
}

/** Returns whether a name at the service is only a part of names. davgate gives such names to folders only. */
export function isPart(name: string): boolean {
  return mayBePart(name) && partIn(name) !== undefined;
}

/**
 * Returns the names that the names on an entry's path at the service stand for. Throws `PathError` for a part alone, and for
 * an entry that is no part in a folder that is one.
 */
export function wholeNames(names: readonly string[]): readonly string[] {
  if (!names.some(mayBePart)) return names;
  const whole: string[] = [];
  let parts: string[] = [];
  let read = '';
  for (const name of names) {
    const text = parts.length > 0 && name.startsWith(MARK) ? name.slice(1) : name;
    const part = partIn(text);
    parts.push(name);
    read += part ?? text;
    if (part !== undefined) continue;
    const meant = withoutQuote(read);
    if (parts.length > 1) checkParts(meant, parts);
    whole.push(meant);
    parts = [];
    read = '';
  }
  if (parts.length > 0) throw new PathError(`${JSON.stringify(parts.at(-1))} is only a part of a name`);
  return whole;
}

function checkParts(name: string, parts: readonly string[]): void {
  const expected = partsOf(name);
  const isWhole = expected.every((part, at) => foldName(part) === foldName(parts[at] ?? ''));
  if (!isWhole || expected.length !== parts.length)
    throw new PathError(`${JSON.stringify(parts.at(-1))} is no part of a name, but its folder is`);
}

/** Returns the part that a folder's name contains; `undefined` for a name that is no part, or the last one. */
function partIn(text: string): string | undefined {
  const quotes = quotesIn(text);
  return quotes !== undefined && quotes % 2 === 0 ? text.slice(0, -1) : undefined;
}

/** Quotes the mark at the end of a name that would be a part otherwise, and the quotes before it. */
function withQuote(name: string): string {
  const quotes = quotesIn(name);
  return quotes === undefined ? name : name.slice(0, -1) + QUOTE.repeat(quotes + 1) + MARK;
}

function withoutQuote(name: string): string {
  const quotes = quotesIn(name);
  return quotes === undefined ? name : name.slice(0, -quotes - 1) + QUOTE.repeat(quotes >> 1) + MARK;
}

/** Returns the number of quotes before the mark at the end of a name that is as long as a part; `undefined` for another. */
function quotesIn(name: string): number | undefined {
  const marked = mayBePart(name) ? QUOTED_MARK.exec(name) : null;
  if (!marked || lengthOf(name.slice(0, marked.index)) <= SHORTEST_PART) return undefined;
  return marked[0].length - 1;
}

function mayBePart(name: string): boolean {
  return name.endsWith(MARK) && name.length > SHORTEST_PART / DECOMPOSED_LENGTH_MAX;
}

function lengthOf(text: string): number {
  return text.normalize('NFD').length;
}
