import { expect, test } from 'vitest';
import { slotOf } from '../../../src/state/redis/slot.ts';

test.each([
  ['123456789', 12739],
  ['foo', 12182],
  ['{foo}.bar', 12182],
  ['davgate:{foo}:locks', 12182],
  // An empty hash tag is none.
  ['{}foo', 9500],
])('the slot of %s is the one that CLUSTER KEYSLOT tells', (key, slot) => {
  expect(slotOf(key)).toBe(slot);
});
