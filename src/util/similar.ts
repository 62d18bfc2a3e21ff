/** Typing errors that a suggestion may assume in a word of this many characters. */
function errorsIn(length: number): number {
  return length <= 3 ? 1 : length <= 7 ? 2 : 3;
}

/** Returns the word of `known` that was probably meant by `typed`; `undefined` if none is similar. */
export function similarTo(typed: string, known: Iterable<string>): string | undefined {
  let best: { readonly word: string; readonly distance: number } | undefined;
  for (const word of known) {
    const distance = distanceOf(typed.toLowerCase(), word.toLowerCase());
    const isNear = distance <= errorsIn(Math.min(word.length, typed.length)) && distance < word.length;
    if (isNear && distance < (best?.distance ?? Number.POSITIVE_INFINITY)) best = { word, distance };
  }
  return best?.word;
}

/** Returns ` (did you mean "…"?)` for an error message, or `''` if no word of `known` is similar. */
export function didYouMean(typed: string, known: Iterable<string>): string {
  const word = similarTo(typed, known);
  return word === undefined ? '' : ` (did you mean "${word}"?)`;
}

/** Returns the number of characters to insert, remove, replace or swap with the next one (Damerau, optimal alignment). */
function distanceOf(one: string, other: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: other.length + 1 }, (_, column) => column);
  for (let row = 1; row <= one.length; row++) {
    const current = [row];
    for (let column = 1; column <= other.length; column++) {
      const isSame = one[row - 1] === other[column - 1];
      const isSwap = one[row - 1] === other[column - 2] && one[row - 2] === other[column - 1];
      current[column] = Math.min(
        (last[column] ?? 0) + 1,
        (current[column - 1] ?? 0) + 1,
        (last[column - 1] ?? 0) + (isSame ? 0 : 1),
        isSwap ? (beforeLast[column - 2] ?? 0) + 1 : Number.POSITIVE_INFINITY,
      );
    }
    [beforeLast, last] = [last, current];
  }
  return last[other.length] ?? 0;
}
