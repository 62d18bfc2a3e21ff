import { afterEach, beforeEach, expect, test } from 'vitest';
import { at, openScripted, type Scripted } from '../../support/scripted-remote.ts';
import {
  type Answer,
  fileMetadata,
  json,
  lose,
  notFound,
  ok,
  tagged,
  text,
} from '../../support/scripted-service.ts';

const STAT = 'files/get_metadata';
const POLL = 'files/list_folder/longpoll';
const found = ok(tagged('file', fileMetadata('/f')));
const REVOKED = json(401, {
  error_summary: 'expired_access_token/',
  error: { '.tag': 'expired_access_token' },
});

let scripted: Scripted;
let returns: number;
beforeEach(async () => {
  scripted = await openScripted({ deadlineMs: 0, random: () => 0.5 });
  returns = 0;
  scripted.remote.availability.onBack(() => returns++);
});
afterEach(() => scripted.close());

/** Returns whether the service counts as away after calls with these answers. */
async function afterAnswers(...answers: Answer[]): Promise<boolean> {
  const { service, remote } = scripted;
  service.on(STAT, ...answers);
  for (const _ of answers) await remote.stat(at('/f')).catch(() => {});
  return remote.availability.awaySince !== undefined;
}

test.each<[string, Answer]>([
  ['a lost connection', lose],
  ['500', text(500, '')],
  ['the page of a captive portal', text(403, '<html>log in</html>')],
  ['a refused token', REVOKED],
])('after %s the service counts as away until its next answer', async (_what, trouble) => {
  expect(await afterAnswers(trouble)).toBe(true);
  expect(returns).toBe(0);
  expect(await afterAnswers(found)).toBe(false);
  expect(returns).toBe(1);
});

test('a refusal shows that the service is back, like a result', async () => {
  await afterAnswers(lose);
  expect(await afterAnswers(notFound)).toBe(false);
  expect(returns).toBe(1);
});

test('a service that was never away reports no return', async () => {
  await afterAnswers(found, notFound, found);
  expect(returns).toBe(0);
});

test('the return of a service that comes and goes is reported once in ten seconds at most', async () => {
  const comesAndGoes = () => afterAnswers(lose, found);
  for (let time = 0; time < 5; time++) await comesAndGoes();
  expect(returns).toBe(1);
  await scripted.clock.advance(9_999);
  await afterAnswers(found);
  expect(returns).toBe(1);
  await scripted.clock.advance(1);
  await afterAnswers(found);
  expect(returns).toBe(2);
});

test('a long poll, which needs no token, does not end an outage of other calls', async () => {
  const { service, remote } = scripted;
  await afterAnswers(REVOKED);
  service.on(POLL, ok({ changes: true }));
  expect(await remote.awaitChange('cursor', 30_000)).toBe(true);
  expect(remote.availability.awaySince).toBeDefined();
  expect(returns).toBe(0);
});

test('a call that its caller aborts does not count as an outage', async () => {
  const given = AbortSignal.abort(new Error('gone'));
  await expect(scripted.remote.stat(at('/f'), given)).rejects.toThrow('gone');
  expect(scripted.remote.availability.awaySince).toBeUndefined();
});

test("a listener that was removed is not told of the service's return", async () => {
  let heard = 0;
  const stop = scripted.remote.availability.onBack(() => heard++);
  stop();
  await afterAnswers(lose, found);
  expect([returns, heard]).toEqual([1, 0]);
});
