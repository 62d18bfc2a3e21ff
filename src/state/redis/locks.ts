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
import {
  CLAIM,
  COVERING,
  CREATE,
  END_CLAIMS,
  REFRESH,
  RELEASE,
  RENEW_CLAIMS,
  WITHIN,
} from './locks-scripts.ts';

/** Locks in Redis. One script checks for conflicts and creates the lock, so that gateways do not interfere. */
export function redisLocks(
  { connection, key }: DriveStore,
  { clock, log }: { readonly clock: Clock; readonly log: Log },
): Locks {
  const keys = [
    ...[key('locks'), key('lock-places'), key('lock-ends')],
    ...[key('claims'), key('claim-places'), key('claim-ends'), key('lock-principals')],
  ];
  const run = (text: string, ...words: string[]) => connection.script(text, keys, words);
  const within = async (nowMs: number, path: Path) =>
    current(nowMs, locksOf(textsOf(await run(WITHIN, keyOf(path)))));
  const leases = new ClaimLeases({
    clock,
    renew: async (id, claims, leaseMs) => {
      const wereHeld = numberOf(await run(RENEW_CLAIMS, id, textOf(claims), String(leaseMs))) === 1;
      if (!wereHeld) log.warn('a running request was unprotected against new locks: Redis was away too long');
      return wereHeld;
    },
  });

  return {
    async create(nowMs, wanted) {
      const { timeoutSeconds, expiresMs, ...lasting } = wanted;
      const [outcome, what = '', span = ''] = textsOf(
        await run(
          CREATE,
          ...[String(nowMs), wanted.token, wanted.scope, wanted.depth, String(expiresMs)],
          ...[JSON.stringify(lasting), JSON.stringify({ timeoutSeconds, expiresMs })],
          ...[keyOf(wanted.root), wanted.principal],
          ...[String(LOCKS_ON_RESOURCE_MAX), String(LOCKS_OF_USER_MAX)],
        ),
      );
      if (outcome === 'conflict') return { conflict: lockOf(what, span) };
      if (outcome === 'claim') return { claim: claimOf(what) };
      if (outcome === 'full') return { full: what === 'user' ? 'user' : 'resource' };
      return wanted;
    },
    async claim(nowMs, claims) {
      const id = randomUUID();
      const answers = listOf(await run(CLAIM, id, textOf(claims), String(leases.leaseMs)));
      leases.add(id, claims);
      return { id, protections: protectionsOf(nowMs, answers) };
    },
    claimsHold: (id) => leases.hold(id),
    async endClaims(id) {
      leases.end(id);
      // Claims that Redis is not asked to end expire.
      await run(END_CLAIMS, id).catch(() => {});
    },
    claimsEnd: (id, signal) => leases.ended(id, signal),
    async refresh(nowMs, token, { timeoutSeconds, expiresMs }) {
      const span = JSON.stringify({ timeoutSeconds, expiresMs });
      const lasting = textOrNothing(await run(REFRESH, String(nowMs), token, String(expiresMs), span));
      return lasting === undefined ? undefined : lockOf(lasting, span);
    },
    release: async (token) => numberOf(await run(RELEASE, token)) === 1,
    covering: async (nowMs, path) => current(nowMs, locksOf(textsOf(await run(COVERING, keyOf(path))))),
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
  const groups = answers.map((answer) => current(nowMs, locksOf(textsOf(answer))));
  const protections: Protection[] = [];
  for (let index = 0; index < groups.length; index += 2)
    protections.push({ covering: groups[index] ?? [], within: groups[index + 1] ?? [] });
  return protections;
}

/** Parses `lasting, span, lasting, span, …`. */
function locksOf(texts: readonly string[]): Lock[] {
  const locks: Lock[] = [];
  for (let index = 0; index < texts.length; index += 2)
    locks.push(lockOf(texts[index] ?? '', texts[index + 1] ?? ''));
  return locks;
}

function lockOf(lasting: string, span: string): Lock {
  return { ...JSON.parse(lasting), ...JSON.parse(span) }; // as `create` and `refresh` wrote them
}

function current(nowMs: number, locks: readonly Lock[]): readonly Lock[] {
  return locks.filter((lock) => lock.expiresMs > nowMs);
}
