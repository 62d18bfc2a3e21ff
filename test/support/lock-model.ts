import fc from 'fast-check';
import { expect } from 'vitest';
import type { Claim, Lock, Locks } from '../../src/state/locks.ts';
import { isWithin, keyOf, type Path, pathOf } from '../../src/util/path.ts';
import { HOUR_MS, lockOn, NOW_MS, type OwnClock, tokensOf } from './locks.ts';
import { path } from './paths.ts';

const NAMES = fc.constantFrom('a', 'A', 'ab', 'a!', '%', '_', 'ß');
const PATH = fc.array(NAMES, { maxLength: 3 }).map(pathOf);

const STEP = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('create' as const),
      root: PATH,
      scope: fc.constantFrom('exclusive' as const, 'shared' as const),
      depth: fc.constantFrom('0' as const, 'infinity' as const),
      hours: fc.integer({ min: 1, max: 30 }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant('wait' as const), hours: fc.integer({ min: 1, max: 8 }) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('refresh' as const),
      pick: fc.nat(),
      hours: fc.integer({ min: 1, max: 30 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('release' as const), pick: fc.nat() }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('claim' as const),
      root: PATH,
      depth: fc.constantFrom('0' as const, 'infinity' as const),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('end-claim' as const), number: fc.nat() }) },
);

/** Sequences of calls to a store of locks, and of time that passes. */
export const LOCK_STEPS = fc.array(STEP, { minLength: 40, maxLength: 80 });

type Step = typeof STEP extends fc.Arbitrary<infer T> ? T : never;

/** A model that keeps the locks in a plain list and answers every question by a scan. */
class Model {
  nowMs = NOW_MS;
  /** Every token ever granted, so that steps also name locks that are gone. */
  readonly given: string[] = [];
  locks: Lock[] = [];
  claims: (Claim & { readonly id: string })[] = [];

  alive(): Lock[] {
    return this.locks.filter((lock) => lock.expiresMs > this.nowMs);
  }

  covering(at: Path): Lock[] {
    return this.alive().filter((lock) => covers(lock, at));
  }

  within(at: Path): Lock[] {
    return this.alive().filter((lock) => isWithin(lock.root, at));
  }
}

function covers(lock: Claim, at: Path): boolean {
  return keyOf(lock.root) === keyOf(at) || (lock.depth === 'infinity' && isWithin(at, lock.root));
}

function meet(one: Claim, other: Claim): boolean {
  return covers(one, other.root) || covers(other, one.root);
}

function conflict(one: Lock, other: Lock): boolean {
  return meet(one, other) && (one.scope === 'exclusive' || other.scope === 'exclusive');
}

/** Takes the steps, and expects after each that the store answers like a plain list. */
export async function expectModel(steps: readonly Step[], locks: Locks, time: OwnClock): Promise<void> {
  const model = new Model();
  for (const step of steps) {
    await take(step, { locks, model, time });
    await expectAgreement(locks, model);
  }
}

interface Run {
  readonly locks: Locks;
  readonly model: Model;
  readonly time: OwnClock;
}

async function take(step: Step, { locks, model, time }: Run): Promise<void> {
  const { pass, seen } = time;
  const token = 'pick' in step ? (model.given[step.pick % Math.max(1, model.given.length)] ?? 'none') : '';
  // Steps take hours, so that the time that passes while the test runs changes nothing.
  const span = (hours: number) => ({
    timeoutSeconds: hours * 3600,
    expiresMs: model.nowMs + hours * HOUR_MS,
  });
  if (step.do === 'wait') {
    model.nowMs += step.hours * HOUR_MS;
    await pass(step.hours * HOUR_MS);
  } else if (step.do === 'create') {
    const wanted = lockOn('/', { ...step, ...span(step.hours), root: step.root });
    const { token, root, scope, depth, ownerXml, principal, timeoutSeconds, expiresMs } = wanted;
    const lock: Lock = { token, root, scope, depth, ownerXml, principal, timeoutSeconds, expiresMs };
    const inTheWay = model.alive().filter((other) => conflict(lock, other));
    const claimed = model.claims.filter((claim) => meet(claim, lock));
    const answer = await locks.create(model.nowMs, lock);
    if (inTheWay.length > 0) {
      expect(inTheWay.map(seen)).toContainEqual('conflict' in answer ? answer.conflict : undefined);
    } else if (claimed.length > 0) {
      expect(claimed).toContainEqual('claim' in answer ? answer.claim : undefined);
    } else {
      expect(answer).toEqual(lock);
      model.locks.push(lock);
      model.given.push(token);
    }
  } else if (step.do === 'claim') {
    const claim = { root: step.root, depth: step.depth };
    const { id, protections } = await locks.claim(model.nowMs, [claim]);
    model.claims.push({ ...claim, id });
    const within = claim.depth === 'infinity' ? model.within(claim.root) : [];
    expect(protections.map((found) => [tokensOf(found.covering), tokensOf(found.within)])).toEqual([
      [tokensOf(model.covering(claim.root)), tokensOf(within)],
    ]);
  } else if (step.do === 'end-claim') {
    const [ended] = model.claims.splice(step.number % Math.max(1, model.claims.length), 1);
    if (ended) await locks.endClaims(ended.id);
  } else if (step.do === 'refresh') {
    const old = model.alive().find((lock) => lock.token === token);
    const renewed = old && { ...old, ...span(step.hours) };
    expect(await locks.refresh(model.nowMs, token, span(step.hours))).toEqual(renewed);
    if (renewed) model.locks = model.locks.map((lock) => (lock === old ? renewed : lock));
  } else {
    const alive = model.alive().some((lock) => lock.token === token);
    const released = await locks.release(token);
    // `release` has no time argument, so an expired lock may or may not be found.
    if (alive) expect(released).toBe(true);
    model.locks = model.locks.filter((lock) => lock.token !== token);
  }
}

async function expectAgreement(locks: Locks, model: Model): Promise<void> {
  const all = await locks.all(model.nowMs);
  expect(tokensOf(all)).toEqual(tokensOf(model.alive()));
  for (const [index, lock] of all.entries()) {
    expect(lock.expiresMs).toBeGreaterThan(model.nowMs);
    for (const other of all.slice(index + 1)) expect(conflict(lock, other)).toBe(false);
  }
  for (const at of ['/', '/a', '/ab', '/a!', '/%', '/a/a', '/a/_/ß'].map(path)) {
    expect(tokensOf(await locks.covering(model.nowMs, at))).toEqual(tokensOf(model.covering(at)));
    expect(tokensOf(await locks.within(model.nowMs, at))).toEqual(tokensOf(model.within(at)));
  }
}
