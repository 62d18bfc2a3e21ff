const SIZES = [0, 10, 3000, 60_000, 70_000, 300_000, 4_194_304, 5_000_000];

/** Returns the content of a label, which the writing and the checking process both compute. */
export function contentOf(label) {
  let sum = 0;
  for (const character of label) sum = (sum * 31 + character.charCodeAt(0)) >>> 0;
  const size = SIZES[sum % SIZES.length];
  return Buffer.alloc(size, `${label} `);
}

/** Returns a generator of numbers from 0 below a bound, from a seed (mulberry32). */
export function randomOf(seed) {
  let state = seed >>> 0;
  return (bound) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % bound;
  };
}
