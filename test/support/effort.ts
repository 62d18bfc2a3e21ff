/**
 * How much the random tests do, as a multiple of what `npm test` does: there each mechanism is exercised a few times,
 * with another seed in every run; `npm run test:long` looks for the rare orders of events.
 */
const EFFORT = Number(process.env['TEST_EFFORT'] ?? 1);

/** Returns the number of rounds or operations for a test that does `count` of them in `npm test`. */
export function effort(count: number): number {
  return Math.ceil(count * EFFORT);
}

/** Returns the seed that TEST_SEED names, or any. A test prints it, so that its run can be repeated. */
export function testSeed(): number {
  return Number(process.env['TEST_SEED'] ?? Math.floor(Math.random() * 1_000_000));
}
