import { foldName } from '../../../util/path.ts';

/** What separates words: anything but letters, marks and digits. */
const WORD = /[\p{L}\p{M}\p{N}]+/gu;

/** A character of a word. */
const OF_WORD = /[\p{L}\p{M}\p{N}]/u;

/** Symbols that nearly every name has: one of them alone tells no name from another. */
const COMMON_SYMBOLS = new Set(' ._-');

/** A word of a text, where it stands in it, and its key. */
export interface Word {
  readonly start: number;
  readonly end: number;
  readonly folded: string;
}

/** The words of a text in NFC, in order. */
export function wordsIn(text: string): Word[] {
  return Array.from(text.normalize('NFC').matchAll(WORD), ({ 0: word, index }) => ({
    start: index,
    end: index + word.length,
    folded: foldName(word),
  }));
}

/** The symbols of a text that the index knows names by: each rare one, and each pair of common ones side by side. */
export function symbolsIn(text: string): string[] {
  const characters = Array.from(text.normalize('NFC'));
  return characters.flatMap((character, index) => {
    if (OF_WORD.test(character)) return [];
    if (!COMMON_SYMBOLS.has(character)) return [character];
    const next = characters[index + 1];
    return next !== undefined && COMMON_SYMBOLS.has(next) ? [character + next] : [];
  });
}

/** The different words and symbols of a name's key. */
export function wordsOf(nameKey: string): ReadonlySet<string> {
  return new Set([...wordsIn(nameKey).map(({ folded }) => folded), ...symbolsIn(nameKey)]);
}
