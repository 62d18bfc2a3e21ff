/** Redis' answers as the types they must have; anything else is a mistake of ours, or no Redis. */
export function textOf(answer: unknown): string {
  if (typeof answer !== 'string') throw new TypeError(`Redis answered ${typeof answer} instead of a text`);
  return answer;
}

/** `undefined` where there is nothing. */
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
