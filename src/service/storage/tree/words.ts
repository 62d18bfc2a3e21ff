import { foldName } from '../../../util/path.ts';

/** What separates words: anything but letters, marks and digits. */
const WORD = /[\p{L}\p{M}\p{N}]+/gu;

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

/** The different words of a name's key. */
export function wordsOf(nameKey: string): ReadonlySet<string> {
  return new Set(wordsIn(nameKey).map(({ folded }) => folded));
}
