import { createHmac, randomBytes } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import PQueue from 'p-queue';
import { type Clock, type Instant, instantIn } from '../util/clock.ts';
import { type Login, parseBasic } from './basic.ts';
import { PasswordHashError, parsePasswordHash, verifyPassword } from './passwords.ts';
import { Throttle } from './throttle.ts';

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

/** Hashes computed at a time: they share the thread pool with all file access. */
const HASHES_AT_ONCE = 2;

/** Logins that may wait for a hash; beyond it somebody is knocking too hard. */
const HASHES_WAITING_MAX = 64;

const BUSY_RETRY_MS = 5_000;

/** Checks Basic credentials against a table of users. */
export class Credentials {
  #users: ReadonlyMap<string, User>;
  readonly #clock: Clock;
  readonly #throttle: Throttle;
  readonly #hashes = new PQueue({ concurrency: HASHES_AT_ONCE });
  /** So that memory holds nothing from which a password could be computed. */
  readonly #key = randomBytes(32);
  readonly #right = new LRUCache<string, { readonly user: User; readonly until: Instant }>({
    max: KNOWN_MAX,
  });
  readonly #wrong = new LRUCache<string, { readonly until: Instant }>({ max: KNOWN_MAX });
  readonly #running = new Map<string, Promise<Verdict>>();

  /** Throws `PasswordHashError` for a user without a usable hash. */
  constructor(users: readonly User[], clock: Clock) {
    checkHashes(users);
    this.#users = byName(users);
    this.#clock = clock;
    this.#throttle = new Throttle(clock);
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
    if (right && now < right.until) return { user: right.user };
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
    if (this.#hashes.size >= HASHES_WAITING_MAX) return { retryAfterMs: BUSY_RETRY_MS };
    const retryAfterMs = this.#throttle.attempt(name, address);
    if (retryAfterMs > 0) return { retryAfterMs };
    const until = instantIn(this.#clock, KNOWN_MS);
    const isRight = await this.#isRight(login.password, user);
    // The user may be gone by now, or have another password.
    if (this.#users !== users) return this.#verify(key, authorization, address);
    if (!isRight) {
      this.#wrong.set(key, { until });
      return 'unauthorized';
    }
    if (!user) return 'unauthorized';
    this.#throttle.forgive(name, address);
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
    const isMatch = await this.#hashes.add(() => verifyPassword(password, hash));
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
