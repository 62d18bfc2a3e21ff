/** The smallest of `numbers`; infinity when there are none. As arguments of `Math.min` they may be some 125,000. */
export function smallest(numbers: Iterable<number>): number {
  let found = Number.POSITIVE_INFINITY;
  for (const number of numbers) if (number < found) found = number;
  return found;
}

/** The largest of `numbers`; minus infinity when there are none. */
export function largest(numbers: Iterable<number>): number {
  let found = Number.NEGATIVE_INFINITY;
  for (const number of numbers) if (number > found) found = number;
  return found;
}
