/**
 * Work of the random tests as a multiple of that in `npm test`, which exercises each mechanism a few times
 * with a new seed. `npm run test:long` looks for rare orders of events.
 */
const EFFORT = Number(process.env['TEST_EFFORT'] ?? 1);

/** Returns the number of rounds or operations for a test that does `count` of them in `npm test`. */
export function effort(count: number): number {
  return Math.ceil(count * EFFORT);
}

/** Whether this is `npm run test:long`, which also tries the combinations that `npm test` leaves out. */
export const IS_LONG = EFFORT > 1;

/** Returns the rows of a table of combinations: all in `npm run test:long`, only the first and the last in `npm test`. */
export function combinations<T>(rows: readonly T[]): T[] {
  return rows.filter((_, index) => IS_LONG || index === 0 || index === rows.length - 1);
}

/** Returns the seed in TEST_SEED, or a random one. A test prints it, so that its run can be repeated. */
export function testSeed(): number {
  return Number(process.env['TEST_SEED'] ?? Math.floor(Math.random() * 1_000_000));
}
