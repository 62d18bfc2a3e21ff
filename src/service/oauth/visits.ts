import { createHmac, randomBytes } from 'node:crypto';
import type { Exchange } from '../../http/exchange.ts';
import { ageMs, type Clock, type Moment, momentNow } from '../../util/clock.ts';
import type { Account, Accounts } from '../accounts/accounts.ts';
import { isSameSecret, newSecret } from '../accounts/secrets.ts';
import { cookiesNamed } from '../api/forms.ts';

/** The name of the cookie that holds a visit's id. */
export const VISIT_COOKIE = 'davgate-visit';

/** How long a sign-in lasts, in ms: a working day. */
const SIGNED_IN_MS = 8 * 60 * 60 * 1000;
/** Maximum number of people signed in at a time; beyond it the oldest sign-in is dropped. */
const SIGNED_IN_MAX = 10_000;

/** One browser on the pages of `/oauth2/authorize`. */
export interface Visit {
  /** Known only to this browser. */
  readonly id: string;
  /** The account that is signed in. */
  readonly account?: Account;
  /** The query of the request for which the password was given. */
  readonly signedInFor?: string;
}

interface SignedIn {
  readonly accountId: string;
  /** Hash at the time of signing in: a changed password ends the sign-in. */
  readonly passwordHash: Uint8Array;
  readonly since: Moment;
  readonly signedInFor: string;
}

/**
 * The sign-ins, by a cookie of the browser. Kept in memory, so that a restart asks for passwords again. Each form
 * carries a token that only this service can make for this browser and request (CSRF).
 */
export class Visits {
  readonly #signedIn = new Map<string, SignedIn>();
  readonly #key = randomBytes(32);

  constructor(
    private readonly accounts: Accounts,
    private readonly clock: Clock,
  ) {}

  /** Returns the visit that a request belongs to; a new one for a browser without our cookie. */
  of(exchange: Exchange): Visit {
    const [id] = cookiesNamed(exchange, VISIT_COOKIE);
    return id !== undefined && /^[\w-]{43}$/.test(id) ? this.#known(id) : { id: newSecret() };
  }

  /** Signs in under a new id, so that an id known to others before is not signed in (session fixation). */
  signIn(visit: Visit, account: Account, query: string): Visit {
    this.signOut(visit);
    const id = newSecret();
    this.#signedIn.set(id, {
      accountId: account.id,
      passwordHash: account.passwordHash ?? Buffer.of(),
      since: momentNow(this.clock),
      signedInFor: query,
    });
    const [oldest] = this.#signedIn.keys();
    if (this.#signedIn.size > SIGNED_IN_MAX && oldest !== undefined) this.#signedIn.delete(oldest);
    return { id, account, signedInFor: query };
  }

  /** Ends a sign-in that was for one request only. */
  spend({ id }: Visit): void {
    const signedIn = this.#signedIn.get(id);
    if (signedIn) this.#signedIn.set(id, { ...signedIn, signedInFor: '' });
  }

  signOut({ id }: Visit): void {
    this.#signedIn.delete(id);
  }

  /** Returns the token of a form on the page of this request. */
  formToken({ id }: Visit, query: string): string {
    return createHmac('sha256', this.#key).update(`${id}\n${query}`).digest('base64url');
  }

  isFormToken(visit: Visit, query: string, given: string): boolean {
    return isSameSecret(given, this.formToken(visit, query));
  }

  #known(id: string): Visit {
    const signedIn = this.#signedIn.get(id);
    if (!signedIn) return { id };
    const account = this.accounts.find(signedIn.accountId);
    const isGood =
      account?.passwordHash !== undefined &&
      Buffer.from(account.passwordHash).equals(signedIn.passwordHash) &&
      ageMs(this.clock, signedIn.since) < SIGNED_IN_MS;
    if (isGood) return { id, account, signedInFor: signedIn.signedInFor };
    this.#signedIn.delete(id);
    return { id };
  }
}
