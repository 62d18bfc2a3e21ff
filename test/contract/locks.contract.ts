import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  type Claim,
  type Claimed,
  LOCKS_OF_USER_MAX,
  LOCKS_ON_RESOURCE_MAX,
  type Locks,
} from '../../src/state/locks.ts';
import { ROOT } from '../../src/util/path.ts';
import { aHundredAtOnce } from '../support/a-hundred-at-once.ts';
import { effort, testSeed } from '../support/effort.ts';
import { expectModel, LOCK_STEPS } from '../support/lock-model.ts';
import { HOUR_MS, lockOn, NOW_MS, type OwnClock, tokensOf } from '../support/locks.ts';
import { path } from '../support/paths.ts';

const claimOn = (root: string, depth: Claim['depth'] = '0'): Claim => ({ root: path(root), depth });

const NOTHING = { covering: [], within: [] };

/** The end of a lock by the caller's `nowMs` is all that counts. */
const CALLERS_CLOCK: OwnClock = { pass: async () => {}, seen: (lock) => lock };

/** Tests an implementation of `Locks`; `open` returns an empty store. */
export function locksContract(driver: string, open: () => Promise<Locks>, time = CALLERS_CLOCK): void {
  const { pass, seen } = time;
  describe(`locks in ${driver}`, () => {
    test('a created lock is returned unchanged', async () => {
      const locks = await open();
      const lock = lockOn('/Plans/x');
      expect(await locks.create(NOW_MS, lock)).toEqual(lock);
      expect(await locks.covering(NOW_MS, path('/plans/X'))).toEqual([seen(lock)]);
      expect(await locks.all(NOW_MS)).toEqual([seen(lock)]);
    });

    test.each([
      ['an exclusive lock on an exclusively locked path', lockOn('/a'), lockOn('/a'), true],
      ['an exclusive lock on a shared-locked path', lockOn('/a', { scope: 'shared' }), lockOn('/a'), true],
      ['a shared lock on an exclusively locked path', lockOn('/a'), lockOn('/a', { scope: 'shared' }), true],
      [
        'a shared lock beside a shared one',
        lockOn('/a', { scope: 'shared' }),
        lockOn('/a', { scope: 'shared' }),
        false,
      ],
      ['a lock below one of depth infinity', lockOn('/a'), lockOn('/a/b/c', { depth: '0' }), true],
      ['a lock below a locked root', lockOn('/'), lockOn('/a/b', { depth: '0' }), true],
      ['a lock below one of depth 0', lockOn('/a', { depth: '0' }), lockOn('/a/b'), false],
      ['a lock of depth infinity above another', lockOn('/a/b', { depth: '0' }), lockOn('/a'), true],
      ['a lock of depth infinity on the root', lockOn('/a/b', { depth: '0' }), lockOn('/'), true],
      ['a lock of depth 0 above another', lockOn('/a/b'), lockOn('/a', { depth: '0' }), false],
      ['a lock in another letter case', lockOn('/Ä/B'), lockOn('/ä/b'), true],
      ['a lock on a name with the same prefix', lockOn('/a'), lockOn('/ab'), false],
      ['a lock beside a name that sorts before the slash', lockOn('/a!'), lockOn('/a'), false],
      ['a lock on a name with wildcards', lockOn('/a_%'), lockOn('/abc'), false],
    ])('%s is granted unless it conflicts', async (_, first, second, conflicts) => {
      const locks = await open();
      expect(await locks.create(NOW_MS, first)).toEqual(first);
      expect(await locks.create(NOW_MS, second)).toEqual(conflicts ? { conflict: seen(first) } : second);
      expect(tokensOf(await locks.all(NOW_MS))).toEqual(tokensOf(conflicts ? [first] : [first, second]));
    });

    test('of 50 concurrent exclusive locks of one path exactly one is granted', async () => {
      const locks = await open();
      const wanted = Array.from({ length: 50 }, () => lockOn('/a/b'));
      const answers = await Promise.all(wanted.map((lock) => locks.create(NOW_MS, lock)));
      expect(answers.filter((answer) => 'token' in answer)).toHaveLength(1);
      expect(await locks.all(NOW_MS)).toHaveLength(1);
    });

    test('an expired lock covers nothing, is not listed, cannot be refreshed and is not in the way', async () => {
      const locks = await open();
      const lock = lockOn('/a');
      await locks.create(NOW_MS, lock);
      expect(await locks.covering(NOW_MS, path('/a'))).toEqual([seen(lock)]);
      const later = NOW_MS + HOUR_MS;
      await pass(HOUR_MS);
      expect(await locks.covering(later, path('/a'))).toEqual([]);
      expect(await locks.within(later, ROOT)).toEqual([]);
      expect(await locks.all(later)).toEqual([]);
      const span = { timeoutSeconds: 60, expiresMs: later + 60_000 };
      expect(await locks.refresh(later, lock.token, span)).toBeUndefined();
      const next = lockOn('/a', { expiresMs: later + HOUR_MS });
      expect(await locks.create(later, next)).toEqual(next);
    });

    test('a refresh changes the timeout of a lock and nothing else', async () => {
      const locks = await open();
      const lock = lockOn('/a');
      await locks.create(NOW_MS, lock);
      const span = { timeoutSeconds: 60, expiresMs: NOW_MS + 2 * HOUR_MS };
      expect(await locks.refresh(NOW_MS, lock.token, span)).toEqual({ ...lock, ...span });
      await pass(HOUR_MS);
      expect(await locks.all(NOW_MS + HOUR_MS)).toEqual([seen({ ...lock, ...span })]);
      expect(await locks.refresh(NOW_MS, 'urn:uuid:none', span)).toBeUndefined();
    });

    test('a released lock frees its path, and a second release returns false', async () => {
      const locks = await open();
      const lock = lockOn('/a');
      await locks.create(NOW_MS, lock);
      expect(await locks.release(lock.token)).toBe(true);
      expect(await locks.release(lock.token)).toBe(false);
      expect(await locks.create(NOW_MS, lockOn('/a'))).toHaveProperty('token');
    });

    test.each([
      ['on the claimed file', claimOn('/a/b'), lockOn('/A/b', { depth: '0' }), true],
      ['a shared one on the claimed file', claimOn('/a/b'), lockOn('/a/b', { scope: 'shared' }), true],
      ['above it with depth infinity', claimOn('/a/b'), lockOn('/a'), true],
      ['on the root with depth infinity', claimOn('/a/b'), lockOn('/'), true],
      ['above it with depth 0', claimOn('/a/b'), lockOn('/a', { depth: '0' }), false],
      ['below a claimed tree', claimOn('/a', 'infinity'), lockOn('/a/b/c', { depth: '0' }), true],
      ['below a claimed folder', claimOn('/a'), lockOn('/a/b'), false],
      ['below the claimed root', claimOn('/', 'infinity'), lockOn('/a'), true],
      ['on a claimed folder, with depth 0', claimOn('/a'), lockOn('/a', { depth: '0' }), true],
      ['beside it', claimOn('/a', 'infinity'), lockOn('/a!'), false],
    ])('a lock %s is refused while a claim conflicts with it', async (_, claim, lock, isRefused) => {
      const locks = await open();
      const { id, protections } = await locks.claim(NOW_MS, [claim]);
      expect(protections).toEqual([NOTHING]);
      const refusal = { claim: { ...claim, id } };
      expect(await locks.create(NOW_MS, lock)).toEqual(isRefused ? refusal : lock);
      await locks.endClaims(id);
      if (isRefused) expect(await locks.create(NOW_MS, lock)).toEqual(lock);
    });

    test('a claim returns the locks that protect its path, and is granted despite them', async () => {
      const locks = await open();
      const [above, at, below] = [
        lockOn('/a', { scope: 'shared' }),
        lockOn('/a/b', { scope: 'shared', depth: '0' }),
        lockOn('/a/b/c', { scope: 'shared' }),
      ];
      const gone = lockOn('/a/b/d', { expiresMs: NOW_MS });
      for (const lock of [at, lockOn('/x'), gone]) await locks.create(NOW_MS - HOUR_MS / 2, lock);
      await pass(HOUR_MS / 2);
      await locks.create(NOW_MS, above);
      const claims = [claimOn('/a/B', 'infinity'), claimOn('/a/b'), claimOn('/none')];
      const { protections } = await locks.claim(NOW_MS, claims);
      expect(protections.map(({ covering }) => tokensOf(covering))).toEqual([
        tokensOf([above, at]),
        tokensOf([above, at]),
        [],
      ]);
      expect(protections.map(({ within }) => tokensOf(within))).toEqual([tokensOf([at]), [], []]);
      expect(await locks.create(NOW_MS, below)).toHaveProperty('claim');
    });

    test('several claims of one path are granted, and ending one leaves the other', async () => {
      const locks = await open();
      const [one, other] = [
        await locks.claim(NOW_MS, [claimOn('/a')]),
        await locks.claim(NOW_MS, [claimOn('/a')]),
      ];
      await locks.endClaims(one.id);
      await locks.endClaims(one.id);
      expect(await locks.create(NOW_MS, lockOn('/a'))).toEqual({ claim: { ...claimOn('/a'), id: other.id } });
    });

    test('of a concurrent claim and lock, one sees the other', async () => {
      const locks = await open();
      const races = Array.from({ length: 30 }, async (_, index) => {
        const lock = lockOn(`/${index}`);
        const claim = () => locks.claim(NOW_MS, [claimOn(`/${index}`)]);
        const [claimed, created] =
          index % 2 === 0
            ? await Promise.all([claim(), locks.create(NOW_MS, lock)])
            : ((await Promise.all([locks.create(NOW_MS, lock), claim()])).toReversed() as [Claimed, unknown]);
        const wasSeen = claimed.protections[0]?.covering.length === 1;
        expect(created).toEqual(wasSeen ? lock : { claim: { ...claimOn(`/${index}`), id: claimed.id } });
      });
      await Promise.all(races);
    });

    test('claimsEnd waits until the claim ends, or until its signal is aborted', async () => {
      const locks = await open();
      const { id } = await locks.claim(NOW_MS, [claimOn('/a')]);
      const leaving = new AbortController();
      const { signal } = leaving;
      const left = locks.claimsEnd(id, signal);
      leaving.abort(new Error('gone'));
      await expect(left).rejects.toThrow('gone');
      const patient = new AbortController().signal;
      const waiting = locks.claimsEnd(id, patient);
      await locks.endClaims(id);
      await waiting;
      await locks.claimsEnd(id, patient);
      expect(await locks.create(NOW_MS, lockOn('/a'))).toHaveProperty('token');
    });

    test('a resource has at most 32 shared locks, including those above it, until one is released', async () => {
      const locks = await open();
      const shared = (root: string, principal: string) => lockOn(root, { scope: 'shared', principal });
      const above = shared('/a', 'ann');
      await locks.create(NOW_MS, above);
      for (let count = 1; count < LOCKS_ON_RESOURCE_MAX; count++)
        expect(await locks.create(NOW_MS, shared('/a/b', `user${count}`))).toHaveProperty('token');
      expect(await locks.create(NOW_MS, shared('/a/b', 'ben'))).toEqual({ full: 'resource' });
      expect(await locks.create(NOW_MS, shared('/a/c', 'ben'))).toHaveProperty('token');
      await locks.release(above.token);
      expect(await locks.create(NOW_MS, shared('/a/b', 'ben'))).toHaveProperty('token');
    });

    test('a user has at most 1,000 locks, which released and expired locks do not count toward', async () => {
      const locks = await open();
      const taken = Array.from({ length: LOCKS_OF_USER_MAX }, (_, index) =>
        lockOn(`/${index}`, index === 1 ? { expiresMs: NOW_MS + HOUR_MS / 2 } : {}),
      );
      await aHundredAtOnce().addAll(taken.map((lock) => () => locks.create(NOW_MS, lock)));
      expect(await locks.all(NOW_MS)).toHaveLength(LOCKS_OF_USER_MAX);
      expect(await locks.create(NOW_MS, lockOn('/more'))).toEqual({ full: 'user' });
      expect(await locks.create(NOW_MS, lockOn('/other', { principal: 'ann ' }))).toHaveProperty('token');
      await locks.release(taken[0]?.token ?? '');
      expect(await locks.create(NOW_MS, lockOn('/more'))).toHaveProperty('token');
      await pass(HOUR_MS / 2);
      expect(await locks.create(NOW_MS + HOUR_MS / 2, lockOn('/again'))).toHaveProperty('token');
      expect(await locks.create(NOW_MS + HOUR_MS / 2, lockOn('/last'))).toEqual({ full: 'user' });
    });

    test('after any sequence of steps no two locks conflict, and all answers equal those of a plain list', async () => {
      await fc.assert(
        fc.asyncProperty(LOCK_STEPS, async (steps) => expectModel(steps, await open(), time)),
        {
          numRuns: effort(5),
          seed: testSeed(),
        },
      );
    });
  });
}
