import { createHash, randomBytes } from 'node:crypto';
import { ageMs, type Clock, momentNow } from '../util/clock.ts';
import type { Log } from '../util/log.ts';
import { neighborhoodOf } from '../util/networks.ts';
import { BegunSignIns } from './begun-sign-ins.ts';
import type { User } from './credentials.ts';
import type { Exchange } from './exchange.ts';
import { type OidcClient, OidcError, OidcProvider } from './oidc-provider.ts';
import { cookieName, cookieOf, OIDC_PATH, type SignInAtProvider, type SignInProvider } from './sign-in.ts';

/** How long a person has for the sign-in at the provider, in ms. */
const BEGUN_MS = 10 * 60_000;

/** Maximum number of sign-ins that have begun, if nothing else is said. */
const BEGUN_MAX = 10_000;

/** Maximum length of a remembered address to go on to, in characters. */
const TO_MAX = 1_000;

/** Maximum number of parallel questions to the provider. */
const ASKING_MAX = 64;

/** Maximum number of one client among these, so that one client does not take the turns of all. */
const ASKING_PER_CLIENT_MAX = 32;

export interface OidcSignInOptions {
  readonly client: OidcClient;
  /** The provider's name for people. */
  readonly name: string;
  /** The address of the drive for people, without a slash at the end; `undefined`: the one that the browser asks. */
  readonly publicUrl: string | undefined;
  /** Returns the user for a name that davgate does not know; absent if only its own users may sign in. */
  readonly newUser?: ((name: string) => User) | undefined;
  /** Maximum number of sign-ins that have begun. */
  readonly begunMax?: number;
  readonly clock: Clock;
  readonly log: Log;
}

/** Signs browsers in at an OpenID Connect provider. */
export class OidcSignIn implements SignInProvider {
  readonly name: string;
  readonly #options: OidcSignInOptions;
  readonly #provider: OidcProvider;
  /** Each is used once. */
  readonly #begun: BegunSignIns;
  /** The client of each question that the provider has not answered. */
  readonly #asking: string[] = [];

  constructor(options: OidcSignInOptions) {
    this.name = options.name;
    this.#options = options;
    this.#provider = new OidcProvider(options.client);
    this.#begun = new BegunSignIns(options.begunMax ?? BEGUN_MAX);
  }

  /** Begins a sign-in. The cookie ties it to the browser, which must not come back with somebody else's. */
  async begin(exchange: Exchange, to: string): ReturnType<SignInProvider['begin']> {
    const { clock, log } = this.#options;
    // One secret for the sign-ins in several tabs.
    const known = cookieOf(exchange, 'oidc');
    const secret = known !== undefined && SECRET.test(known) ? known : newSecret();
    const checks = {
      redirectUri: this.#redirectUri(exchange),
      ...{ state: newSecret(), nonce: newSecret(), verifier: newSecret() },
    };
    try {
      const signInAddress = await this.#ask(exchange, () => this.#provider.signInAddress(checks));
      const goOn = to.length > TO_MAX ? `${exchange.prefix}/` : to;
      const { address } = exchange;
      const browser = hashOf(secret);
      this.#begun.add({ ...checks, address, browser, to: goOn, since: momentNow(clock) });
      return { address: signInAddress, cookie: cookie(exchange, secret) };
    } catch (error) {
      return { to, problem: problemOf(error, exchange, log) };
    }
  }

  /** Ends a sign-in: the provider has sent the browser back. `find` returns a user that davgate knows. */
  async finish(exchange: Exchange, find: (name: string) => User | undefined): Promise<SignInAtProvider> {
    const { clock, log, newUser } = this.#options;
    const { query, address } = exchange;
    const begun = this.#begun.get(query.get('state') ?? '');
    const secret = cookieOf(exchange, 'oidc');
    let to = `${exchange.prefix}/`;
    try {
      if (!begun || ageMs(clock, begun.since) >= BEGUN_MS)
        throw new OidcError('expired', 'the sign-in began more than 10 minutes ago, or not here');
      // Left for its own browser.
      if (secret === undefined || hashOf(secret) !== begun.browser)
        throw new OidcError('expired', 'the sign-in began in another browser, or the cookie is missing');
      this.#begun.delete(begun);
      to = begun.to;
      const name = await this.#ask(exchange, () => this.#provider.userName(query, begun));
      const user = find(name) ?? newUser?.(name);
      if (user) return { user, to };
      log.warn('sign-in failed', { address, user: name, reason: 'davgate has no user of this name' });
      return { to, problem: { unknownUser: name } };
    } catch (error) {
      return { to, problem: problemOf(error, exchange, log) };
    }
  }

  /** Nobody can make davgate keep many questions to a slow provider open. */
  async #ask<T>({ address }: Exchange, question: () => Promise<T>): Promise<T> {
    const client = neighborhoodOf(address);
    const own = this.#asking.filter((one) => one === client);
    if (this.#asking.length >= ASKING_MAX || own.length >= ASKING_PER_CLIENT_MAX)
      throw new OidcError('away', 'too many sign-ins wait for its answers');
    this.#asking.push(client);
    try {
      return await question();
    } finally {
      this.#asking.splice(this.#asking.indexOf(client), 1);
    }
  }

  #redirectUri({ isSecure, forwardedHosts, request, prefix }: Exchange): string {
    const host = forwardedHosts?.[0] ?? request.headers.host ?? '';
    const url = this.#options.publicUrl ?? `${isSecure ? 'https' : 'http'}://${host}${prefix}`;
    return `${url}${OIDC_PATH}/callback`;
  }
}

/** Logs why a sign-in has failed. Throws an error that is none of the provider. */
function problemOf(error: unknown, { address }: Exchange, log: Log): OidcError['problem'] {
  if (!(error instanceof OidcError)) throw error;
  const { problem, message } = error;
  const fields = { address, reason: message };
  if (problem === 'away' || problem === 'failed')
    log.error('the OpenID Connect provider has a problem', fields);
  else log.warn('sign-in failed', fields);
  return problem;
}

const SECRET = /^[\w-]{43}$/;

function newSecret(): string {
  return randomBytes(32).toString('base64url');
}

function hashOf(secret: string): string {
  return createHash('sha256').update(secret).digest('base64');
}

/** Unlike that of the session, it is sent when another site leads the browser here. */
function cookie(exchange: Exchange, secret: string): string {
  const secure = exchange.isSecure ? '; Secure' : '';
  return `${cookieName(exchange, 'oidc')}=${secret}; Path=/; Max-Age=${BEGUN_MS / 1000}; HttpOnly; SameSite=Lax${secure}`;
}
