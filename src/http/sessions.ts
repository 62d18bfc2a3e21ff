import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { ageMs, type Clock, type Moment, momentNow } from '../util/clock.ts';
import type { User } from './credentials.ts';

/** A session ends after this time without a request, in ms. */
const IDLE_MS = 24 * 60 * 60_000;

/** A session ends this long after its sign-in, in ms. */
const LIFETIME_MS = 7 * 24 * 60 * 60_000;

/**
 * Lifetime of a session of a user whom an external check or an OpenID Connect provider has accepted, in ms: davgate does not
 * hear when they forget the user, and cannot ask again without the person.
 */
const EXTERNAL_LIFETIME_MS = 60 * 60_000;

/** Maximum number of sessions of one user; beyond it the one that was used longest ago ends. */
const PER_USER_MAX = 50;

/** Maximum number of all sessions; beyond it the one that was used longest ago ends. */
const SESSIONS_MAX = 10_000;

const ID_BYTES = 32;
const ID = /^[\w-]{43}$/;

interface Session {
  readonly user: User;
  /** Whether an OpenID Connect provider has accepted the user. */
  readonly isFromProvider: boolean;
  readonly since: Moment;
  lastUse: Moment;
}

/**
 * The browsers that are signed in. Kept in memory alone and by the hash of their id: a restart ends all of them, and no
 * copy of the data directory or of this memory holds an id that a browser could send.
 */
export class Sessions {
  /** By the hash of the id. The one that was used longest ago comes first. */
  readonly #sessions = new Map<string, Session>();

  constructor(private readonly clock: Clock) {}

  /** Starts a session of `user` and returns its id, a secret of the browser. */
  start(user: User, { isFromProvider = false } = {}): string {
    const mine: string[] = [];
    for (const [digest, session] of this.#sessions) if (session.user.name === user.name) mine.push(digest);
    const [oldest] = mine;
    if (oldest !== undefined && mine.length >= PER_USER_MAX) this.#sessions.delete(oldest);
    const [first] = this.#sessions.keys();
    if (this.#sessions.size >= SESSIONS_MAX && first !== undefined) this.#sessions.delete(first);
    const id = randomBytes(ID_BYTES).toString('base64url');
    const now = momentNow(this.clock);
    this.#sessions.set(digestOf(id), { user, isFromProvider, since: now, lastUse: now });
    return id;
  }

  /** Returns the user of a session and counts this as its use; `undefined` when the session has ended. */
  use(id: string): User | undefined {
    if (!ID.test(id)) return undefined;
    const digest = digestOf(id);
    const session = this.#sessions.get(digest);
    if (!session) return undefined;
    this.#sessions.delete(digest);
    const isExternal = session.isFromProvider || session.user.passwordHash === undefined;
    const lifetimeMs = isExternal ? EXTERNAL_LIFETIME_MS : LIFETIME_MS;
    if (ageMs(this.clock, session.since) >= lifetimeMs) return undefined;
    if (ageMs(this.clock, session.lastUse) >= IDLE_MS) return undefined;
    session.lastUse = momentNow(this.clock);
    this.#sessions.set(digest, session);
    return session.user;
  }

  /** Whether a session goes on. This does not count as its use. */
  has(id: string): boolean {
    return this.#sessions.has(digestOf(id));
  }

  isFromProvider(id: string): boolean {
    return this.#sessions.get(digestOf(id))?.isFromProvider === true;
  }

  end(id: string): void {
    this.#sessions.delete(digestOf(id));
  }

  /** Ends the sessions of users who are not in `users` or have another password there; the others go on. */
  replaceUsers(users: readonly User[]): void {
    const byName = new Map(users.map((user) => [user.name, user]));
    for (const [digest, session] of this.#sessions) {
      const user = byName.get(session.user.name);
      const isSame = user && user.passwordHash === session.user.passwordHash;
      // The external check answers for users without a hash, and may have other drives for them by now.
      if (isSame && (user.passwordHash !== undefined || session.isFromProvider))
        this.#sessions.set(digest, { ...session, user });
      else this.#sessions.delete(digest);
    }
  }
}

function digestOf(id: string): string {
  return createHash('sha256').update(id).digest('base64');
}

/** Returns the token that shows that a request comes from a page that could read it, and not only from the browser. */
export function csrfTokenOf(id: string): string {
  return createHmac('sha256', id).update('csrf').digest('base64url');
}

export function isCsrfToken(id: string, given: string): boolean {
  const expected = Buffer.from(csrfTokenOf(id));
  const actual = Buffer.from(given);
  return actual.length === expected.length && timingSafeEqual(actual, expected);
}
