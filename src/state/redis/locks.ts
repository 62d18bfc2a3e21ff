import { randomUUID } from 'node:crypto';
import type { Clock } from '../../util/clock.ts';
import type { Log } from '../../util/log.ts';
import { keyOf, type Path, ROOT } from '../../util/path.ts';
import {
  type Claim,
  LOCKS_OF_USER_MAX,
  LOCKS_ON_RESOURCE_MAX,
  type Lock,
  type Locks,
  type Protection,
  type RunningClaim,
} from '../locks.ts';
import { listOf, numberOf, textOrNothing, textsOf } from './answers.ts';
import { ClaimLeases } from './claim-leases.ts';
import type { DriveStore } from './drive-keys.ts';
import { isWithoutAnswer } from './failure.ts';
import {
  CLAIM,
  COVERING,
  CREATE,
  END_CLAIMS,
  REFRESH,
  RELEASE,
  RENEW_CLAIMS,
  WITHDRAW,
  WITHIN,
} from './locks-scripts.ts';
import type { ReplicaAcks } from './replica-acks.ts';
import type { Withdrawals } from './withdrawals.ts';

/** How long after a failure Redis may still execute a request, in ms: far longer than it keeps a lost connection. */
const LATE_MS_MAX = 10 * 60_000;

export interface LocksDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly withdrawals: Withdrawals;
  readonly replicas: ReplicaAcks;
}

/**
 * Locks in Redis. One script checks for conflicts and creates the lock, so that gateways do not interfere. The clock of
 * Redis decides when a lock ends, so that gateways whose clocks differ agree on it.
 */
export function redisLocks(
  { connection, key }: DriveStore,
  { clock, log, withdrawals, replicas }: LocksDeps,
): Locks {
  const keys = [
    ...[key('locks'), key('lock-places'), key('lock-ends')],
    ...[key('claims'), key('claim-places'), key('claim-ends'), key('lock-principals')],
    key('withdrawn-locks'),
  ];
  const run = (text: string, ...words: string[]) => connection.script(text, keys, words);
  const within = async (nowMs: number, path: Path) => locksOf(nowMs, textsOf(await run(WITHIN, keyOf(path))));
  const withdraw = (token: string, lastsMs: number) =>
    withdrawals.add(
      token,
      lastsMs,
      async () => numberOf(await run(WITHDRAW, token, String(LATE_MS_MAX))) === 1,
    );
  const leases = new ClaimLeases({
    clock,
    renew: async (id, claims, leaseMs) => {
      const wereHeld = numberOf(await run(RENEW_CLAIMS, id, textOf(claims), String(leaseMs))) === 1;
      if (!wereHeld) log.warn('a running request was unprotected against new locks: Redis was away too long');
      return wereHeld;
    },
  });
  // Claims that this gateway no longer renews expire.
  const endLater = (id: string) =>
    withdrawals.add(id, leases.leaseMs + LATE_MS_MAX, async () => {
      await run(END_CLAIMS, id);
      return false;
    });

  return {
    async create(nowMs, wanted) {
      const { timeoutSeconds, expiresMs, ...lasting } = wanted;
      const lastsMs = expiresMs - nowMs;
      const withdrawIfUncertain = (error: unknown) => {
        if (isWithoutAnswer(error)) withdraw(wanted.token, lastsMs + LATE_MS_MAX);
        throw error;
      };
      const creating = run(
        CREATE,
        ...[wanted.token, wanted.scope, wanted.depth, String(lastsMs)],
        ...[JSON.stringify(lasting), JSON.stringify({ timeoutSeconds })],
        ...[keyOf(wanted.root), wanted.principal],
        ...[String(LOCKS_ON_RESOURCE_MAX), String(LOCKS_OF_USER_MAX)],
      ).catch(withdrawIfUncertain);
      const [outcome, what = '', ...facts] = textsOf(await creating);
      if (outcome === 'conflict') return { conflict: lockOf(nowMs, [what, ...facts]) };
      if (outcome === 'claim') return { claim: claimOf(what) };
      if (outcome === 'full') return { full: what === 'user' ? 'user' : 'resource' };
      await replicas.confirm().catch(withdrawIfUncertain);
      return wanted;
    },
    async claim(nowMs, claims) {
      const id = randomUUID();
      const claiming = run(CLAIM, id, textOf(claims), String(leases.leaseMs)).catch((error) => {
        if (isWithoutAnswer(error)) endLater(id);
        throw error;
      });
      const answers = listOf(await claiming);
      leases.add(id, claims);
      return { id, protections: protectionsOf(nowMs, answers) };
    },
    claimsHold: (id) => leases.hold(id),
    async endClaims(id) {
      leases.end(id);
      await run(END_CLAIMS, id).catch(() => endLater(id));
    },
    claimsEnd: (id, signal) => leases.ended(id, signal),
    async refresh(nowMs, token, { timeoutSeconds, expiresMs }) {
      const lastsMs = String(expiresMs - nowMs);
      const span = JSON.stringify({ timeoutSeconds });
      const lasting = textOrNothing(await run(REFRESH, token, lastsMs, span));
      if (lasting === undefined) return undefined;
      await replicas.confirm();
      return lockOf(nowMs, [lasting, span, lastsMs]);
    },
    release: async (token) => numberOf(await run(RELEASE, token)) === 1,
    withdraw: async ({ token, timeoutSeconds }) => withdraw(token, timeoutSeconds * 1000),
    covering: async (nowMs, path) => locksOf(nowMs, textsOf(await run(COVERING, keyOf(path)))),
    within,
    all: (nowMs) => within(nowMs, ROOT),
  };
}

/** Returns claims as the scripts read them. */
function textOf(claims: readonly Claim[]): string {
  return JSON.stringify(
    claims.map(({ root, depth }) => ({ root, key: keyOf(root), depth: depth === 'infinity' ? 'i' : '0' })),
  );
}

function claimOf(text: string): RunningClaim {
  const { id, root, depth } = JSON.parse(text); // as `textOf` and the script wrote it
  return { id, root, depth: depth === 'i' ? 'infinity' : '0' };
}

/** Parses `covering, within, covering, within, …`. */
function protectionsOf(nowMs: number, answers: readonly unknown[]): Protection[] {
  const groups = answers.map((answer) => locksOf(nowMs, textsOf(answer)));
  const protections: Protection[] = [];
  for (let index = 0; index < groups.length; index += 2)
    protections.push({ covering: groups[index] ?? [], within: groups[index + 1] ?? [] });
  return protections;
}

/** Parses `lasting, span, time left, lasting, span, time left, …`. */
function locksOf(nowMs: number, texts: readonly string[]): Lock[] {
  const locks: Lock[] = [];
  for (let index = 0; index < texts.length; index += FACTS)
    locks.push(lockOf(nowMs, texts.slice(index, index + FACTS)));
  return locks;
}

/** Number of texts that the scripts return for a lock. */
const FACTS = 3;

/** Redis tells the time left by its own clock; the caller, whose clock shows `nowMs`, gets the end by the caller's. */
function lockOf(nowMs: number, [lasting = '', span = '', leftMs = '']: readonly string[]): Lock {
  const { timeoutSeconds } = JSON.parse(span); // as `create` and `refresh` wrote it
  return { ...JSON.parse(lasting), timeoutSeconds, expiresMs: nowMs + Number(leftMs) };
}
