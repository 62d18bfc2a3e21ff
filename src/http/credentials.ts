import { createHmac, randomBytes } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { type Clock, type Instant, instantIn } from '../util/clock.ts';
import type { Log } from '../util/log.ts';
import { type Login, parseBasic } from './basic.ts';
import { PasswordGate } from './password-gate.ts';
import { PasswordHashError, parsePasswordHash, verifyPassword } from './passwords.ts';

/** Somebody who may come in. */
export interface User {
  readonly name: string;
  /** Made by `hashPassword`. */
  readonly passwordHash: string;
  /** The drive that this user sees. */
  readonly drive: string;
}

export type Verdict = { readonly user: User } | 'unauthorized' | { readonly retryAfterMs: number };

/** For how long credentials that were checked are known without another hash. */
const KNOWN_MS = 10 * 60_000;

/** Credentials that are known, right and wrong ones each. */
const KNOWN_MAX = 1_000;

/** The longest wait after a wrong password, in ms: clients give up a request that takes half a minute or more. */
const LONGEST_WAIT_MS = 10_000;

/** How long a login may be held back, in ms: one that is right comes in late while somebody guesses beside it. */
const HELD_MS_MAX = 60_000;

/** What of a name goes to the log, in characters. */
const LOGGED_NAME_MAX = 100;

/** Checks Basic credentials against a table of users. */
export class Credentials {
  #users: ReadonlyMap<string, User>;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #gate: PasswordGate;
  /** So that memory holds nothing from which a password could be computed. */
  readonly #key = randomBytes(32);
  readonly #right = new LRUCache<string, { readonly user: User; readonly until: Instant }>({
    max: KNOWN_MAX,
  });
  readonly #wrong = new LRUCache<string, { readonly until: Instant }>({ max: KNOWN_MAX });
  readonly #running = new Map<string, Promise<Verdict>>();

  /** Throws `PasswordHashError` for a user without a usable hash. */
  constructor(
    users: readonly User[],
    { clock, log, closing }: { readonly clock: Clock; readonly log: Log; readonly closing: AbortSignal },
  ) {
    checkHashes(users);
    this.#users = byName(users);
    this.#clock = clock;
    this.#log = log;
    const waits = { longestWaitMs: LONGEST_WAIT_MS, heldMsMax: HELD_MS_MAX };
    this.#gate = new PasswordGate({ clock, ...waits, closing });
  }

  /** Nobody is known any more by a login that these users do not have. Throws `PasswordHashError`. */
  replaceUsers(users: readonly User[]): void {
    checkHashes(users);
    this.#users = byName(users);
    this.#right.clear();
    this.#wrong.clear();
    this.#running.clear();
  }

  /** Who sends this `Authorization` header from `address`. The first time costs a hash, then a digest. */
  async check(authorization: string | undefined, address: string): Promise<Verdict> {
    if (authorization === undefined) return 'unauthorized';
    const key = createHmac('sha256', this.#key).update(authorization).digest('base64');
    const known = this.#known(key);
    if (known) return known;
    const running = this.#running.get(key) ?? this.#start(key, authorization, address);
    return running;
  }

  #known(key: string): Verdict | undefined {
    const now = this.#clock.instant();
    const right = this.#right.get(key);
    if (right && now < right.until) {
      // Somebody who is at work stays known, however long others guess.
      this.#right.set(key, { user: right.user, until: instantIn(this.#clock, KNOWN_MS) });
      return { user: right.user };
    }
    // A program that keeps sending an old password is no guesser: it is told no, at no cost, as often as it likes.
    const wrong = this.#wrong.get(key);
    return wrong && now < wrong.until ? 'unauthorized' : undefined;
  }

  #start(key: string, authorization: string, address: string): Promise<Verdict> {
    const running = this.#verify(key, authorization, address).finally(() => {
      if (this.#running.get(key) === running) this.#running.delete(key);
    });
    this.#running.set(key, running);
    return running;
  }

  async #verify(key: string, authorization: string, address: string): Promise<Verdict> {
    const login = parseBasic(authorization);
    if (!login) return 'unauthorized';
    const users = this.#users;
    const user = this.#find(login);
    const name = user?.name ?? login.name;
    const attempt = { name, address, exists: user !== undefined };
    const isRight = await this.#gate.check(attempt, () => this.#isRight(login.password, user));
    if (typeof isRight === 'object') return isRight;
    // The user may be gone by now, or have another password.
    if (this.#users !== users) return this.#verify(key, authorization, address);
    const until = instantIn(this.#clock, KNOWN_MS);
    if (!isRight || !user) {
      this.#log.warn('login failed', { address, user: name.slice(0, LOGGED_NAME_MAX) });
      this.#wrong.set(key, { until });
      return 'unauthorized';
    }
    this.#right.set(key, { user, until });
    return { user };
  }

  /** Some Windows clients put a domain in front of the name. */
  #find({ name }: Login): User | undefined {
    return this.#users.get(name) ?? this.#users.get(name.slice(name.lastIndexOf('\\') + 1));
  }

  async #isRight(password: string, user: User | undefined): Promise<boolean> {
    // Who is unknown costs a hash as well, or the time would tell which names exist.
    const [anyone] = this.#users.values();
    const hash = (user ?? anyone)?.passwordHash;
    if (hash === undefined) return false;
    const isMatch = await verifyPassword(password, hash);
    return isMatch && user !== undefined;
  }
}

function byName(users: readonly User[]): ReadonlyMap<string, User> {
  return new Map(users.map((user) => [user.name.normalize('NFC'), user]));
}

/** Throws `PasswordHashError` for a user without a usable hash. */
export function checkHashes(users: readonly User[]): void {
  for (const { name, passwordHash } of users) {
    try {
      parsePasswordHash(passwordHash);
    } catch (error) {
      if (!(error instanceof PasswordHashError)) throw error;
      throw new PasswordHashError(`user ${name}: ${error.message}`);
    }
  }
}
