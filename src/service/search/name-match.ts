import { foldName } from '../../util/path.ts';
import { symbolsIn, wordsIn } from '../storage/tree/name-words.ts';

/** A part of a name, and whether it matched the query. */
export interface Highlight {
  readonly highlight_str: string;
  readonly is_highlighted: boolean;
}

/** Matches names by words. */
export interface NameMatcher {
  /**
   * Returns how well a name matches: 2 equals the query, 1 begins with it, 0 contains its words; `undefined`: no match.
   */
  rank(name: string): number | undefined;
  /**
   * Words and symbols that every matching name contains: whole ones, and the beginning of one. Empty: all names have to
   * be examined.
   */
  readonly words: readonly { readonly text: string; readonly exact: boolean }[];
  /** The query, folded for the comparison with whole names. */
  readonly whole: string;
  highlights(name: string): readonly Highlight[];
}

/**
 * Makes a matcher of names that contain every word of `query`, in any case and order; the last word may be only the
 * beginning of one. A query without words is matched literally.
 */
export function nameMatcher(query: string): NameMatcher {
  const words = wordsIn(query).map(({ folded }) => folded);
  const whole = foldName(query.trim());
  if (words.length === 0) return literalMatcher(whole);
  const last = words.at(-1) ?? '';
  const isHit = (folded: string) => words.includes(folded) || folded.startsWith(last);
  return {
    words: words.map((text, index) => ({ text, exact: index < words.length - 1 })),
    whole,
    rank(name) {
      const folding = foldName(name);
      // Most names do not match, and this check is cheap.
      if (!words.every((word) => folding.includes(word))) return undefined;
      const folded = wordsIn(name).map((word) => word.folded);
      const hasAll = words.every((word, index) =>
        index === words.length - 1 ? folded.some((one) => one.startsWith(word)) : folded.includes(word),
      );
      return hasAll ? rankOf(folding, whole) : undefined;
    },
    highlights: (name) =>
      cut(
        name,
        wordsIn(name).filter(({ folded }) => isHit(folded)),
      ),
  };
}

function literalMatcher(whole: string): NameMatcher {
  const indexIn = (name: string) => (whole === '' ? -1 : foldName(name).indexOf(whole));
  return {
    words: symbolsIn(whole).map((text) => ({ text, exact: true })),
    whole,
    rank: (name) => (indexIn(name) < 0 ? undefined : rankOf(foldName(name), whole)),
    highlights(name) {
      const start = indexIn(name);
      return cut(name, start < 0 ? [] : [{ start, end: start + whole.length }]);
    },
  };
}

/** Returns the rank: the exact name, then names that begin with it, then the others. */
function rankOf(folded: string, whole: string): number {
  if (folded === whole) return 2;
  return folded.startsWith(whole) ? 1 : 0;
}

interface Span {
  readonly start: number;
  readonly end: number;
}

/** Returns the whole name in parts that are highlighted or not. */
function cut(name: string, spans: readonly Span[]): Highlight[] {
  const highlights: Highlight[] = [];
  const add = (highlight_str: string, is_highlighted: boolean) => {
    if (highlight_str !== '') highlights.push({ highlight_str, is_highlighted });
  };
  let end = 0;
  for (const span of spans) {
    add(name.slice(end, span.start), false);
    add(name.slice(span.start, span.end), true);
    end = span.end;
  }
  add(name.slice(end), false);
  return highlights;
}
