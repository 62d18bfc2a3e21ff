import { hash, randomBytes } from 'node:crypto';
import type { Bandwidth, Grant } from '../config/grant.ts';
import { type Clock, type Instant, instantIn } from '../util/clock.ts';
import type { Log } from '../util/log.ts';
import { createLru } from '../util/lru.ts';
import { LoginUnavailable } from './auth-url.ts';
import { type Login, parseBasic } from './basic-login.ts';
import { guessesInMemory } from './guess-counter.ts';
import { PasswordGate } from './password-gate.ts';
import { checkPasswordHash, PasswordHashError, verifyPassword } from './passwords.ts';

/** A user who may log in. */
export interface User {
  /** In Unicode's NFC, like the name of a login. */
  readonly name: string;
  /** Made by `hashPassword`, or by another program in a form that `verifyPassword` knows. `undefined`: no password here. */
  readonly passwordHash?: string;
  readonly grants: readonly Grant[];
  readonly bandwidth?: Bandwidth;
}

/** A login with an app password, which the user can end. */
export interface AppLogin {
  /** Whether it has ended since. */
  readonly isOver: () => boolean;
}

/** The result of a login; that with an app password has `isOver`. */
export type LoginResult =
  | ({ readonly user: User } & Partial<AppLogin>)
  | 'unauthorized'
  | 'unavailable'
  | { readonly retryAfterMs: number };

/**
 * Asks another program about a login. Returns the user, `undefined` for a wrong login. `find` returns the user of the table with
 * a name. Throws `LoginUnavailable`.
 */
export type CheckLogin = (
  login: Login,
  find: (name: string) => User | undefined,
) => Promise<User | undefined>;

/** The address that sends credentials, and the maximum delay of the answer in ms, if shorter than usual. */
interface Client {
  readonly address: string;
  readonly delayMsMax?: number;
}

/** An `Authorization` header, and the digest by which its result is remembered. */
interface DigestedLogin {
  readonly authorization: string;
  readonly digest: string;
}

/** Credentials that were right, and until when they are remembered. */
interface RightLogin {
  readonly login: { readonly user: User } & Partial<AppLogin>;
  until: Instant;
  /** Each use prolongs the memory to this time, in ms. */
  readonly idleMs?: number;
}

interface External {
  readonly check: CheckLogin;
  readonly gate: PasswordGate;
}

interface NamedClient extends Client {
  /** The name whose wrong passwords are counted. */
  readonly name: string;
}

/** How long checked credentials are remembered, in ms: meanwhile they cost no hash. */
const KNOWN_MS = 10 * 60_000;

/** How long logins that the external check has accepted are remembered, in ms. A user whom it drops is locked out soon after. */
const EXTERNAL_KNOWN_MS = 60_000;

/** How long logins that the external check has refused are remembered, in ms: a new user should not wait for long. */
const EXTERNAL_WRONG_MS = 10_000;

/**
 * How long a login with an app password is remembered, in ms: another gateway that shares the state may have ended it. Its
 * check costs no password hash.
 */
const APP_KNOWN_MS = 5_000;

/** Maximum number of parallel questions to the external check. */
const EXTERNAL_AT_ONCE = 8;

/** Maximum number of remembered credentials, right and wrong ones each. */
const KNOWN_MAX = 1_000;

/** Maximum wait after a wrong password, in ms: clients give up a request after about half a minute. */
const LONGEST_WAIT_MS = 10_000;

/** Maximum delay of a login, in ms: a right one is delayed while the same client guesses. */
const DELAY_MS_MAX = 60_000;

/** Maximum length of a logged name, in characters. */
const LOGGED_NAME_MAX = 100;

/** Returns the login that a user's app password is for; `undefined` for any other password. */
export type CheckAppPassword = (user: string, password: string) => Promise<AppLogin | undefined>;

export interface CredentialsOptions {
  readonly clock: Clock;
  readonly log: Log;
  readonly closing: AbortSignal;
  /** Asked about logins whose user has no password in the table. */
  readonly checkLogin?: CheckLogin | undefined;
  /** Finds the app password that a user's password may be. */
  readonly checkAppPassword?: CheckAppPassword | undefined;
}

/** Checks Basic credentials (RFC 7617) against a table of users, and others by the external check, if there is one. */
export class Credentials {
  #users: ReadonlyMap<string, User>;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #gate: PasswordGate;
  /** A gate of its own, because a slow check must not hold up the users of the table. */
  readonly #external: External | undefined;
  readonly #checkAppPassword: CheckAppPassword | undefined;
  /** Keys the digests of remembered credentials, so that they are of no use outside this process. */
  readonly #key = randomBytes(32).toString('base64');
  /** The last header of each connection: a client repeats it in each request, and a digest takes longer than the rest. */
  readonly #digests = new WeakMap<object, DigestedLogin>();
  readonly #right = createLru<RightLogin>(KNOWN_MAX);
  readonly #wrong = createLru<{ readonly until: Instant }>(KNOWN_MAX);
  readonly #running = new Map<string, Promise<LoginResult>>();

  /** Throws `PasswordHashError` for a user without a usable hash. */
  constructor(users: readonly User[], { clock, log, closing, ...checks }: CredentialsOptions) {
    checkHashes(users);
    this.#users = byName(users);
    this.#clock = clock;
    this.#log = log;
    const guesses = guessesInMemory(clock, LONGEST_WAIT_MS);
    const options = { clock, guesses, delayMsMax: DELAY_MS_MAX, closing };
    this.#gate = new PasswordGate(options);
    this.#checkAppPassword = checks.checkAppPassword;
    this.#external = checks.checkLogin && {
      check: checks.checkLogin,
      gate: new PasswordGate({ ...options, comparedAtOnce: EXTERNAL_AT_ONCE }),
    };
  }

  users(): readonly User[] {
    return [...this.#users.values()];
  }

  /** Returns the user of exactly this name. */
  named(name: string): User | undefined {
    return this.#users.get(name);
  }

  /** Whether any user has a password, here or at the external check. */
  get hasPasswords(): boolean {
    return this.#external !== undefined || this.users().some(hasPassword);
  }

  /** Replaces the table and forgets all remembered credentials. Throws `PasswordHashError`. */
  replaceUsers(users: readonly User[]): void {
    checkHashes(users);
    this.#users = byName(users);
    this.#right.clear();
    this.#wrong.clear();
    this.#running.clear();
  }

  /**
   * Checks an `Authorization` header from `address`. The first check costs a password hash, the first one on a connection a
   * digest; later ones cost a comparison, and are answered at once.
   */
  check(
    authorization: string | undefined,
    address: string,
    connection: object,
  ): LoginResult | Promise<LoginResult> {
    if (authorization === undefined) return 'unauthorized';
    const last = this.#digests.get(connection);
    if (last?.authorization === authorization) return this.#checkDigest(last, { address });
    const digested = this.#digestOf(authorization);
    this.#digests.set(connection, digested);
    return this.#checkDigest(digested, { address });
  }

  /**
   * Checks a name and password that a person has typed. Counts and remembers them like a header; answers at once when the
   * person has to wait longer than `delayMsMax`.
   */
  checkPassword(
    name: string,
    password: string,
    address: string,
    delayMsMax: number,
  ): LoginResult | Promise<LoginResult> {
    const authorization = `Basic ${Buffer.from(`${name}:${password}`).toString('base64')}`;
    return this.#checkDigest(this.#digestOf(authorization), { address, delayMsMax });
  }

  #digestOf(authorization: string): DigestedLogin {
    return { authorization, digest: hash('sha256', this.#key + authorization, 'base64') };
  }

  #checkDigest({ authorization, digest }: DigestedLogin, client: Client): LoginResult | Promise<LoginResult> {
    return (
      this.#remembered(digest) ?? this.#running.get(digest) ?? this.#start(digest, authorization, client)
    );
  }

  #remembered(key: string): LoginResult | undefined {
    const now = this.#clock.instant();
    const right = this.#right.get(key);
    if (right && now < right.until && !right.login.isOver?.()) {
      // A client at work stays logged in, however much others guess.
      if (right.idleMs !== undefined) right.until = instantIn(this.#clock, right.idleMs);
      return right.login;
    }
    // A program that repeats an old password is not guessing; its refusals cost nothing.
    const wrong = this.#wrong.get(key);
    return wrong && now < wrong.until ? 'unauthorized' : undefined;
  }

  #start(key: string, authorization: string, client: Client): Promise<LoginResult> {
    const running = this.#verify(key, authorization, client).finally(() => {
      if (this.#running.get(key) === running) this.#running.delete(key);
    });
    this.#running.set(key, running);
    return running;
  }

  async #verify(key: string, authorization: string, client: Client): Promise<LoginResult> {
    const { address } = client;
    const login = parseBasic(authorization);
    if (!login) return 'unauthorized';
    const users = this.#users;
    const user = this.#find(login);
    const name = user?.name ?? login.name;
    const app = user && (await this.#appLogin(user, login, address));
    if (app === 'unavailable') return app;
    if (app && user && this.#users === users) {
      const right = { user, ...app };
      this.#right.set(key, { login: right, until: instantIn(this.#clock, APP_KNOWN_MS) });
      return right;
    }
    const external = user?.passwordHash === undefined ? this.#external : undefined;
    const checked = external
      ? await this.#ask(external, login, { name, ...client })
      : await this.#compare(login, user, { name, ...client });
    if (typeof checked === 'object' && 'retryAfterMs' in checked) return checked;
    if (checked === 'unavailable') return checked;
    // The table was replaced meanwhile: the user may be gone or have another password.
    if (this.#users !== users) return this.#verify(key, authorization, client);
    if (!checked) {
      this.#log.warn('login failed', { address, user: name.slice(0, LOGGED_NAME_MAX) });
      this.#wrong.set(key, { until: instantIn(this.#clock, external ? EXTERNAL_WRONG_MS : KNOWN_MS) });
      return 'unauthorized';
    }
    const until = instantIn(this.#clock, external ? EXTERNAL_KNOWN_MS : KNOWN_MS);
    this.#right.set(key, { login: { user: checked }, until, ...(!external && { idleMs: KNOWN_MS }) });
    return { user: checked };
  }

  /** Looks for an app password. It needs no gate, because its random bits cannot be guessed. */
  async #appLogin({ name }: User, { password }: Login, address: string) {
    try {
      return await this.#checkAppPassword?.(name, password);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      this.#log.error('app passwords cannot be read', { address, user: name, reason });
      return 'unavailable';
    }
  }

  /** Compares a password with the table; `undefined` for a wrong one. */
  async #compare(login: Login, user: User | undefined, client: NamedClient) {
    const attempt = { ...client, exists: user !== undefined };
    const isRight = await this.#gate.check(attempt, () => this.#isRight(login, user));
    return typeof isRight === 'object' ? isRight : isRight ? user : undefined;
  }

  /** Asks the external check; `undefined` for a wrong login. */
  async #ask({ check, gate }: External, login: Login, client: NamedClient) {
    let user: User | undefined;
    try {
      // Which names exist, only the check knows.
      const isRight = await gate.check({ ...client, exists: true }, async () => {
        user = await check(login, (name) => this.#find({ name }));
        return user !== undefined;
      });
      return typeof isRight === 'object' ? isRight : user;
    } catch (error) {
      if (!(error instanceof LoginUnavailable)) throw error;
      const { name, address } = client;
      this.#log.error('the login could not be checked: --auth-url has a problem', {
        address,
        user: name.slice(0, LOGGED_NAME_MAX),
        reason: error.message,
      });
      return 'unavailable';
    }
  }

  /** Finds the user; some Windows clients put a domain before the name. */
  #find({ name }: Pick<Login, 'name'>): User | undefined {
    return this.#users.get(name) ?? this.#users.get(name.slice(name.lastIndexOf('\\') + 1));
  }

  async #isRight({ name, password }: Login, user: User | undefined): Promise<boolean> {
    // A name without a password costs a hash too, or the response time would reveal which names exist.
    const passwordHash = user?.passwordHash ?? this.#standIn(name)?.passwordHash;
    if (passwordHash === undefined) return false;
    const isMatch = await verifyPassword(password, passwordHash);
    return isMatch && user?.passwordHash !== undefined;
  }

  /** Returns a user with a password by the digest of a name, always the same one: hashes of several kinds take different times. */
  #standIn(name: string): User | undefined {
    const digest = Number.parseInt(hash('sha256', this.#key + name).slice(0, 12), 16);
    const users = this.users().filter(hasPassword);
    return users[digest % users.length];
  }
}

function hasPassword({ passwordHash }: User): boolean {
  return passwordHash !== undefined;
}

function byName(users: readonly User[]): ReadonlyMap<string, User> {
  return new Map(users.map((user) => [user.name, user]));
}

/** Throws `PasswordHashError` for a user without a usable hash. */
export function checkHashes(users: readonly User[]): void {
  for (const { name, passwordHash } of users) {
    try {
      if (passwordHash !== undefined) checkPasswordHash(passwordHash);
    } catch (error) {
      if (!(error instanceof PasswordHashError)) throw error;
      throw new PasswordHashError(`user ${name}: ${error.message}`);
    }
  }
}
