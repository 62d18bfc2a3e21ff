/** Returns an answer of Redis as text. Any other type is a bug, or the server is not Redis. */
export function textOf(answer: unknown): string {
  if (typeof answer !== 'string') throw new TypeError(`Redis answered ${typeof answer} instead of a text`);
  return answer;
}

/** Returns an answer of Redis as text, or `undefined` for none. */
export function textOrNothing(answer: unknown): string | undefined {
  return answer === null ? undefined : textOf(answer);
}

export function numberOf(answer: unknown): number {
  if (typeof answer !== 'number') throw new TypeError(`Redis answered ${typeof answer} instead of a number`);
  return answer;
}

export function textsOf(answer: unknown): string[] {
  return listOf(answer).map(textOf);
}

export function listOf(answer: unknown): readonly unknown[] {
  if (!Array.isArray(answer)) throw new TypeError(`Redis answered ${typeof answer} instead of a list`);
  return answer;
}
