import { beforeEach, describe, expect, test } from 'vitest';
import type { User } from '../../../src/http/credentials.ts';
import { csrfTokenOf, isCsrfToken, Sessions } from '../../../src/http/sessions.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const HOUR_MS = 60 * 60_000;
const DAY_MS = 24 * HOUR_MS;

const ann: User = { name: 'ann', passwordHash: 'scrypt$1', grants: [{ drive: 'd' }] };
const bob: User = { name: 'bob', passwordHash: 'scrypt$2', grants: [{ drive: 'd' }] };

let clock: ManualClock;
let sessions: Sessions;

beforeEach(() => {
  clock = new ManualClock();
  sessions = new Sessions(clock);
});

describe('sessions', () => {
  test('each session has an id of 256 random bits, by which its user is found', () => {
    const ids = [sessions.start(ann), sessions.start(ann), sessions.start(bob)];
    expect(new Set(ids).size).toBe(3);
    for (const id of ids) expect(Buffer.from(id, 'base64url')).toHaveLength(32);
    expect(ids.map((id) => sessions.use(id))).toEqual([ann, ann, bob]);
  });

  test.each(['', 'ended', 'A'.repeat(43), 'ä'.repeat(43)])('the unknown id %o has no user', (id) => {
    sessions.start(ann);
    expect(sessions.use(id)).toBeUndefined();
  });

  test('a session ends after a day without a request, and each request restarts that day', async () => {
    const id = sessions.start(ann);
    await clock.advance(DAY_MS - 1);
    expect(sessions.use(id)).toEqual(ann);
    await clock.advance(DAY_MS - 1);
    expect(sessions.use(id)).toEqual(ann);
    await clock.advance(DAY_MS);
    expect(sessions.use(id)).toBeUndefined();
  });

  test('a session ends seven days after its sign-in, even when it is in use', async () => {
    const id = sessions.start(ann);
    for (let hours = 0; hours < 7 * 24 - 1; hours += 1) {
      await clock.advance(HOUR_MS);
      expect(sessions.use(id)).toEqual(ann);
    }
    await clock.advance(HOUR_MS);
    expect(sessions.use(id)).toBeUndefined();
  });

  test('the idle time of a session includes the time when the machine was suspended', () => {
    const id = sessions.start(ann);
    clock.stepWall(DAY_MS);
    expect(sessions.use(id)).toBeUndefined();
  });

  test('an ended session has no user, and the user’s other sessions continue', () => {
    const [one, other] = [sessions.start(ann), sessions.start(ann)];
    sessions.end(one);
    expect([sessions.use(one), sessions.use(other)]).toEqual([undefined, ann]);
  });

  test('the 51st session of a user ends the one that was used longest ago, and no other user’s', () => {
    const first = sessions.start(bob);
    const ids = Array.from({ length: 50 }, () => sessions.start(ann));
    sessions.use(ids[0] ?? '');
    ids.push(sessions.start(ann));
    const ended = ids.filter((id) => !sessions.use(id));
    expect(ended).toEqual([ids[1]]);
    expect(sessions.use(first)).toEqual(bob);
  });

  test('with more than 10,000 sessions the one that was used longest ago ends', () => {
    const users = Array.from({ length: 201 }, (_, index) => ({ ...ann, name: `user ${index}` }));
    const ids = users.flatMap((user) => Array.from({ length: 50 }, () => sessions.start(user)));
    expect(ids.slice(0, 50).filter((id) => sessions.use(id))).toEqual([]);
    expect(ids.slice(50).filter((id) => !sessions.use(id))).toEqual([]);
  });

  test('a reload ends the sessions of users who were removed or have a new password, and keeps the others with their new user', () => {
    const [ofAnn, ofBob, ofEve] = [
      sessions.start(ann),
      sessions.start(bob),
      sessions.start({ ...ann, name: 'eve' }),
    ];
    const moved = { ...ann, drive: 'other' };
    sessions.replaceUsers([moved, { ...bob, passwordHash: 'scrypt$3' }]);
    expect([ofAnn, ofBob, ofEve].map((id) => sessions.use(id))).toEqual([moved, undefined, undefined]);
    // The old password does not bring the session back.
    sessions.replaceUsers([moved, bob]);
    expect(sessions.use(ofBob)).toBeUndefined();
  });
});

test('a session’s CSRF token fits this session alone, and does not contain its id', () => {
  const [one, other] = [sessions.start(ann), sessions.start(ann)];
  const token = csrfTokenOf(one);
  expect(token).not.toContain(one);
  expect([isCsrfToken(one, token), isCsrfToken(other, token), isCsrfToken(one, '')]).toEqual([
    true,
    false,
    false,
  ]);
});
