import { foldName } from '../../util/path.ts';
import { symbolsIn, wordsIn } from '../storage/tree/name-words.ts';

/** A part of a name, and whether it is what was searched for. */
export interface Highlight {
  readonly highlight_str: string;
  readonly is_highlighted: boolean;
}

/** Finds names by words. */
export interface NameMatcher {
  /** How well a name fits: 2 is the query, 1 begins with it, 0 has its words; `undefined`: not at all. */
  rank(name: string): number | undefined;
  /** Words and symbols that every name has which fits: whole ones and the beginning of one. None: look at all names. */
  readonly words: readonly { readonly text: string; readonly exact: boolean }[];
  /** The query as it is compared with whole names. */
  readonly whole: string;
  highlights(name: string): readonly Highlight[];
}

/**
 * Matches names in which every word of `query` is, in any case and order; the last one may be only a word's beginning.
 * A query without any word is looked for as it stands.
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
      // Most names that are looked at do not fit, and this is cheap.
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

/** The name itself, then names that begin with it, then the others. */
function rankOf(folded: string, whole: string): number {
  if (folded === whole) return 2;
  return folded.startsWith(whole) ? 1 : 0;
}

interface Span {
  readonly start: number;
  readonly end: number;
}

/** All of the name, in pieces that are highlighted or not. */
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
