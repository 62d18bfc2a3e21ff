import { afterEach, beforeEach, expect, test } from 'vitest';
import { at, openScripted, type Scripted } from '../../support/scripted-remote.ts';
import {
  type Answer,
  fileMetadata,
  json,
  notFound,
  ok,
  tagged,
  text,
} from '../../support/scripted-service.ts';

const STAT = 'files/get_metadata';
const found = ok(tagged('file', fileMetadata('/f')));
const limitedInBody = (seconds: number) =>
  json(429, {
    error_summary: 'too_many_requests/',
    error: { reason: { '.tag': 'too_many_requests' }, retry_after: seconds },
  });

let scripted: Scripted;
beforeEach(async () => {
  scripted = await openScripted();
});
afterEach(() => scripted.close());

test.each<[string, Answer]>([
  ['in seconds', text(429, 'slow down', { 'retry-after': '99999999999' })],
  ['until a date', text(429, 'slow down', { 'retry-after': 'Fri, 31 Dec 9999 23:59:59 GMT' })],
  ['in the error', limitedInBody(1e12)],
])(
  'a rate limit of years (%s) lasts one minute, and then one call at a time tries whether it has ended',
  async (_form, answer) => {
    const { service, remote, clock } = scripted;
    service.on(STAT, answer, answer, found);
    const refused = { failure: 'rate-limited', details: { retryAfterMs: 60_000 } };
    await expect(remote.stat(at('/f'))).rejects.toMatchObject(refused);
    await clock.advance(59_000);
    await expect(remote.stat(at('/f'))).rejects.toMatchObject({ details: { retryAfterMs: 1_000 } });
    expect(service.calls).toHaveLength(1);
    await clock.advance(1_000);
    const trials = await Promise.allSettled([remote.stat(at('/f')), remote.stat(at('/g'))]);
    expect(trials.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    expect(service.calls).toHaveLength(2);
    await clock.advance(60_000);
    expect(await remote.stat(at('/f'))).toMatchObject({ name: 'f' });
    expect(await Promise.all([remote.stat(at('/f')), remote.stat(at('/f'))])).toHaveLength(2);
  },
);

test('a refusal of the trial call ends a rate limit', async () => {
  const { service, remote, clock } = scripted;
  service.on(STAT, text(429, '', { 'retry-after': '999999999' }), notFound, found);
  await expect(remote.stat(at('/f'))).rejects.toMatchObject({ failure: 'rate-limited' });
  await clock.advance(60_000);
  expect(await remote.stat(at('/f'))).toBeUndefined();
  expect(await remote.stat(at('/f'))).toMatchObject({ name: 'f' });
});
