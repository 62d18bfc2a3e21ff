import { expect, test } from 'vitest';
import { FailedPuts } from '../../../../src/dav/methods/failed-puts.ts';
import { ManualClock } from '../../../support/manual-clock.ts';
import { path } from '../../../support/paths.ts';

test('a failed PUT is remembered by user and path for 15 minutes after the last one', async () => {
  const clock = new ManualClock();
  const failed = new FailedPuts(clock);
  failed.add('ann', path('/a'));
  await clock.advance(10 * 60_000);
  failed.add('ann', path('/a'));
  await clock.advance(10 * 60_000);
  expect(failed.has('ann', path('/A'))).toBe(true);
  expect(failed.has('ben', path('/a'))).toBe(false);
  expect(failed.has('ann', path('/b'))).toBe(false);
  await clock.advance(5 * 60_000);
  expect(failed.has('ann', path('/a'))).toBe(false);
});

test('FailedPuts drops the oldest failure beyond 10,000', () => {
  const failed = new FailedPuts(new ManualClock());
  for (let index = 0; index < 10_000; index++) failed.add('ann', path(`/${index}`));
  failed.add('ann', path('/0'));
  failed.add('ann', path('/more'));
  expect(failed.has('ann', path('/0'))).toBe(true);
  expect(failed.has('ann', path('/1'))).toBe(false);
  expect(failed.has('ann', path('/2'))).toBe(true);
});
