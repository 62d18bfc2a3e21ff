import { hash, randomBytes } from 'node:crypto';
import type { Bandwidth, Grant } from '../config/grant.ts';
import { type Clock, type Instant, instantIn } from '../util/clock.ts';
import type { Log } from '../util/log.ts';
import { createLru } from '../util/lru.ts';
import { type Login, LoginUnavailable } from './auth-url.ts';
import { GuessCounter, PasswordGate } from './password-gate.ts';
import { checkPasswordHash, PasswordHashError, verifyPassword } from './passwords.ts';

/** A user who may log in. */
export interface User {
  readonly name: string;
  /** Made by `hashPassword`, or by another program in a form that `verifyPassword` knows. `undefined`: the external check knows it. */
  readonly passwordHash?: string;
  readonly grants: readonly Grant[];
  readonly bandwidth?: Bandwidth;
}

/** The result of a login. */
export type LoginResult =
  | { readonly user: User }
  | 'unauthorized'
  | 'unavailable'
  | { readonly retryAfterMs: number };

/**
 * Asks somebody else about a login. Returns the user, `undefined` for a wrong login. `find` returns the user of the table with
 * a name. Throws `LoginUnavailable`.
 */
export type CheckLogin = (
  login: Login,
  find: (name: string) => User | undefined,
) => Promise<User | undefined>;

/** The address that sends credentials, and the maximum delay of the answer in ms, if shorter than usual. */
interface Client {
  readonly address: string;
  readonly delayMsMax: number | undefined;
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

/** How long logins that the external check has accepted are remembered, in ms: a user whom it forgets is out so soon. */
const EXTERNAL_KNOWN_MS = 60_000;

/** How long logins that the external check has refused are remembered, in ms: a new user should not wait for long. */
const EXTERNAL_WRONG_MS = 10_000;

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

export interface CredentialsOptions {
  readonly clock: Clock;
  readonly log: Log;
  readonly closing: AbortSignal;
  /** Asked about logins whose user has no password in the table. */
  readonly checkLogin?: CheckLogin | undefined;
}

/** Checks Basic credentials (RFC 7617) against a table of users, and others by the external check, if there is one. */
export class Credentials {
  #users: ReadonlyMap<string, User>;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #gate: PasswordGate;
  /** A gate of its own, because a slow check must not hold up the users of the table. */
  readonly #external: External | undefined;
  /** Keys the digests of remembered credentials, so that they are of no use outside this process. */
  readonly #key = randomBytes(32).toString('base64');
  readonly #right = createLru<{ readonly user: User; until: Instant; readonly idleMs?: number }>(KNOWN_MAX);
  readonly #wrong = createLru<{ readonly until: Instant }>(KNOWN_MAX);
  readonly #running = new Map<string, Promise<LoginResult>>();

  /** Throws `PasswordHashError` for a user without a usable hash. */
  constructor(users: readonly User[], { clock, log, closing, checkLogin }: CredentialsOptions) {
    checkHashes(users);
    this.#users = byName(users);
    this.#clock = clock;
    this.#log = log;
    const guesses = new GuessCounter(clock, LONGEST_WAIT_MS);
    const options = { clock, longestWaitMs: LONGEST_WAIT_MS, delayMsMax: DELAY_MS_MAX, closing, guesses };
    this.#gate = new PasswordGate(options);
    this.#external = checkLogin && {
      check: checkLogin,
      gate: new PasswordGate({ ...options, comparedAtOnce: EXTERNAL_AT_ONCE }),
    };
  }

  users(): readonly User[] {
    return [...this.#users.values()];
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
   * Checks an `Authorization` header from `address`. The first check costs a password hash; later ones a digest, and are
   * answered at once.
   */
  check(
    authorization: string | undefined,
    address: string,
    delayMsMax?: number,
  ): LoginResult | Promise<LoginResult> {
    if (authorization === undefined) return 'unauthorized';
    const key = hash('sha256', this.#key + authorization, 'base64');
    return (
      this.#remembered(key) ??
      this.#running.get(key) ??
      this.#start(key, authorization, { address, delayMsMax })
    );
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
    return this.check(authorization, address, delayMsMax);
  }

  #remembered(key: string): LoginResult | undefined {
    const now = this.#clock.instant();
    const right = this.#right.get(key);
    if (right && now < right.until) {
      // A client at work stays logged in, however much others guess.
      if (right.idleMs !== undefined) right.until = instantIn(this.#clock, right.idleMs);
      return { user: right.user };
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
    this.#right.set(key, { user: checked, until, ...(!external && { idleMs: KNOWN_MS }) });
    return { user: checked };
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
    // An unknown name costs a hash too, or the response time would reveal which names exist.
    const passwordHash = (user ?? this.#standIn(name))?.passwordHash;
    if (passwordHash === undefined) return false;
    const isMatch = await verifyPassword(password, passwordHash);
    return isMatch && user !== undefined;
  }

  /** Returns a user by the digest of a name, always the same one: hashes of several kinds take different times. */
  #standIn(name: string): User | undefined {
    const digest = Number.parseInt(hash('sha256', this.#key + name).slice(0, 12), 16);
    return [...this.#users.values()][digest % this.#users.size];
  }
}

function byName(users: readonly User[]): ReadonlyMap<string, User> {
  return new Map(users.map((user) => [user.name.normalize('NFC'), user]));
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

const BASIC = /^basic +([a-z0-9+/]+={0,2})$/i;

/**
 * Parses an `Authorization` header of the Basic scheme (RFC 7617 §2); `undefined` for any other or malformed one. The
 * name ends at the first colon; the password may contain more of them.
 */
function parseBasic(authorization: string): Login | undefined {
  const encoded = BASIC.exec(authorization.trim())?.[1];
  if (encoded === undefined) return undefined;
  const text = decode(Buffer.from(encoded, 'base64')).normalize('NFC');
  const colon = text.indexOf(':');
  // Control characters are forbidden (RFC 7617 §2); a NUL would let a prefix of a name pass as that name.
  if (colon < 1 || /\p{Cc}/u.test(text)) return undefined;
  return { name: text.slice(0, colon), password: text.slice(colon + 1) };
}

/** Decodes UTF-8, which we ask for, or else Windows-1252, which older Windows clients send. */
function decode(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return bytes
      .toString('latin1')
      .replace(/[\u0080-\u009f]/g, (character) => WINDOWS_1252[character.charCodeAt(0) - 0x80] ?? character);
  }
}

/** Windows-1252 from 0x80 to 0x9f, where it differs from Latin-1. The decoder of some Node versions ignores that. */
const WINDOWS_1252 = [...'€\x81‚ƒ„…†‡ˆ‰Š‹Œ\x8dŽ\x8f\x90‘’“”•–—˜™š›œ\x9džŸ'];
