import { isWithin, keyOf, type Path, parentOf, ROOT } from '../../util/path.ts';
import type { SqliteDatabase } from '../../util/sqlite/sqlite.ts';
import {
  type Claim,
  LOCKS_OF_USER_MAX,
  LOCKS_ON_RESOURCE_MAX,
  type Lock,
  type Locks,
  type LocksFull,
} from '../locks.ts';
import { RunningClaims } from '../running-claims.ts';
import type { Commits } from './commits.ts';

interface Row {
  readonly token: string;
  readonly root: string;
  readonly scope: string;
  readonly depth: string;
  readonly owner_xml: string;
  readonly principal: string;
  readonly timeout_seconds: number;
  readonly expires_ms: number;
}

const DURABILITY = 'process-crash';

/**
 * Locks are few and read by each request: all are in memory, and the table only preserves them over a restart. None
 * waits for the disk, which took 7 ms per lock instead of 0.1 ms in a measurement. A client whose lock was lost in a
 * power failure gets an error when it uses the lock, and has lost no data.
 */
export function sqliteLocks(database: SqliteDatabase, drive: number, commits: Commits): Locks {
  const statements = prepare(database, drive);
  const table = new LockTable();
  // No other process shares this state, and claims end with their requests.
  const claims = new RunningClaims();
  let claimed = 0;
  commits.mirror(() => table.reset(statements.all().map(lockOf)));

  const drop = (locks: readonly Lock[]) => {
    for (const lock of locks) statements.remove(lock.token);
    for (const lock of locks) table.remove(lock.token);
  };

  const covering = (nowMs: number, path: Path) =>
    table.covering(path).filter((lock) => !isExpired(lock, nowMs));
  const within = (nowMs: number, path: Path) => table.within(path).filter((lock) => !isExpired(lock, nowMs));
  const protection = (nowMs: number, { root, depth }: Claim) => ({
    covering: covering(nowMs, root),
    within: depth === 'infinity' ? within(nowMs, root) : [],
  });

  const release = (token: string) =>
    commits.run(() => {
      const lock = table.get(token);
      if (lock) drop([lock]);
      return lock !== undefined;
    }, DURABILITY);

  return {
    create: (nowMs, wanted) =>
      commits.run(() => {
        drop(table.expired(nowMs));
        const conflict = table.conflict(wanted);
        if (conflict) return { conflict };
        const claim = claims.conflictingWith(wanted);
        if (claim) return { claim };
        const full = table.full(wanted);
        if (full) return { full };
        statements.insert(wanted);
        table.put(wanted);
        return wanted;
      }, DURABILITY),
    refresh: (nowMs, token, span) =>
      commits.run(() => {
        const old = table.get(token);
        if (!old || isExpired(old, nowMs)) return undefined;
        const lock = { ...old, timeoutSeconds: span.timeoutSeconds, expiresMs: span.expiresMs };
        statements.refresh(lock);
        table.put(lock);
        return lock;
      }, DURABILITY),
    release,
    // A disk that refuses this refuses everything else too, and the lock expires.
    async withdraw({ token }) {
      await release(token).catch(() => {});
    },
    // A lock is checked against the claims and created in one turn of the event loop, and so are claims.
    async claim(nowMs, wanted) {
      const id = String(++claimed);
      claims.add(id, wanted);
      return { id, protections: wanted.map((claim) => protection(nowMs, claim)) };
    },
    claimsHold: async () => true,
    endClaims: async (id) => claims.end(id),
    claimsEnd: (id, signal) => claims.ended(id, signal),
    covering: async (nowMs, path) => covering(nowMs, path),
    within: async (nowMs, path) => within(nowMs, path),
    all: async (nowMs) => within(nowMs, ROOT),
  };
}

function isExpired(lock: Lock, nowMs: number): boolean {
  return lock.expiresMs <= nowMs;
}

/** The locks of one drive in memory, expired ones included until they are removed. */
class LockTable {
  readonly #byToken = new Map<string, Lock>();
  readonly #byRoot = new Map<string, Map<string, Lock>>();

  reset(locks: readonly Lock[]): void {
    this.#byToken.clear();
    this.#byRoot.clear();
    for (const lock of locks) this.put(lock);
  }

  get(token: string): Lock | undefined {
    return this.#byToken.get(token);
  }

  put(lock: Lock): void {
    const key = keyOf(lock.root);
    const siblings = this.#byRoot.get(key) ?? new Map<string, Lock>();
    this.#byRoot.set(key, siblings.set(lock.token, lock));
    this.#byToken.set(lock.token, lock);
  }

  remove(token: string): void {
    const lock = this.#byToken.get(token);
    if (!lock) return;
    const key = keyOf(lock.root);
    const siblings = this.#byRoot.get(key);
    siblings?.delete(token);
    if (siblings?.size === 0) this.#byRoot.delete(key);
    this.#byToken.delete(token);
  }

  /** Returns the expired locks. Called only when a lock is created, so that reading needs no commit. */
  expired(nowMs: number): readonly Lock[] {
    return [...this.#byToken.values()].filter((lock) => isExpired(lock, nowMs));
  }

  /** Its cost is the path's depth, whatever the number of locks. */
  covering(path: Path): readonly Lock[] {
    if (this.#byToken.size === 0) return [];
    const found = this.#at(path).slice();
    for (let folder = path; folder !== ROOT; ) {
      folder = parentOf(folder);
      for (const lock of this.#at(folder)) if (lock.depth === 'infinity') found.push(lock);
    }
    return found;
  }

  /** Its cost is the number of locks. */
  within(path: Path): readonly Lock[] {
    if (this.#byToken.size === 0) return [];
    return [...this.#byToken.values()].filter((lock) => isWithin(lock.root, path));
  }

  /** Returns a lock that conflicts with `wanted` (RFC 4918 §6.2, §7.4). Expired locks must have been removed before. */
  conflict(wanted: Lock): Lock | undefined {
    const below = wanted.depth === 'infinity' ? this.within(wanted.root) : [];
    return [...this.covering(wanted.root), ...below].find(
      (lock) => lock.scope === 'exclusive' || wanted.scope === 'exclusive',
    );
  }

  /** Returns the limit that `wanted` would exceed. Expired locks must have been removed before. */
  full({ root, principal }: Lock): LocksFull | undefined {
    if (this.covering(root).length >= LOCKS_ON_RESOURCE_MAX) return 'resource';
    let held = 0;
    for (const lock of this.#byToken.values()) if (lock.principal === principal) held += 1;
    return held >= LOCKS_OF_USER_MAX ? 'user' : undefined;
  }

  #at(path: Path): readonly Lock[] {
    const locks = this.#byRoot.get(keyOf(path));
    return locks ? [...locks.values()] : [];
  }
}

function lockOf(row: Row): Lock {
  return {
    token: row.token,
    // `insert` wrote these columns, so they have these types.
    root: row.root as Path,
    scope: row.scope as Lock['scope'],
    depth: row.depth as Lock['depth'],
    ownerXml: row.owner_xml,
    principal: row.principal,
    timeoutSeconds: row.timeout_seconds,
    expiresMs: row.expires_ms,
  };
}

function prepare(database: SqliteDatabase, drive: number) {
  const all = database.prepare<[number], Row>('SELECT * FROM locks WHERE drive = ? ORDER BY position');
  const insert = database.prepare(
    `INSERT INTO locks (drive, token, root, scope, depth, owner_xml, principal, timeout_seconds, expires_ms)
     VALUES (@drive, @token, @root, @scope, @depth, @ownerXml, @principal, @timeoutSeconds, @expiresMs)`,
  );
  const refresh = database.prepare(
    `UPDATE locks SET timeout_seconds = @timeoutSeconds, expires_ms = @expiresMs
     WHERE drive = @drive AND token = @token`,
  );
  const remove = database.prepare('DELETE FROM locks WHERE drive = ? AND token = ?');
  return {
    all: () => all.all(drive),
    insert: (lock: Lock) => insert.run({ ...lock, drive }),
    refresh: (lock: Lock) =>
      refresh.run({
        drive,
        token: lock.token,
        timeoutSeconds: lock.timeoutSeconds,
        expiresMs: lock.expiresMs,
      }),
    remove: (token: string) => remove.run(drive, token),
  };
}
