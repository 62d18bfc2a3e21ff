import { foldName } from '../../../util/path.ts';

/** Words: sequences of letters, marks and digits. */
const WORD = /[\p{L}\p{M}\p{N}]+/gu;

/** A character of a word. */
const OF_WORD = /[\p{L}\p{M}\p{N}]/u;

/** Symbols that nearly every name contains: one of them alone distinguishes no names. */
const COMMON_SYMBOLS = new Set(' ._-');

/** A word of a text, its position, and its key. */
export interface Word {
  readonly start: number;
  readonly end: number;
  readonly folded: string;
}

/** Returns the words of a text in NFC, in order. */
export function wordsIn(text: string): Word[] {
  return Array.from(text.normalize('NFC').matchAll(WORD), ({ 0: word, index }) => ({
    start: index,
    end: index + word.length,
    folded: foldName(word),
  }));
}

/** Returns the symbols by which the index knows a text: each rare one, and each pair of adjacent common ones. */
export function symbolsIn(text: string): string[] {
  const characters = Array.from(text.normalize('NFC'));
  return characters.flatMap((character, index) => {
    if (OF_WORD.test(character)) return [];
    if (!COMMON_SYMBOLS.has(character)) return [character];
    const next = characters[index + 1];
    return next !== undefined && COMMON_SYMBOLS.has(next) ? [character + next] : [];
  });
}

/** Returns the distinct words and symbols of a name's key. */
export function wordsOf(nameKey: string): ReadonlySet<string> {
  return new Set([...wordsIn(nameKey).map(({ folded }) => folded), ...symbolsIn(nameKey)]);
}
