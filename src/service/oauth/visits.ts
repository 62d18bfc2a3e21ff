import { createHmac, randomBytes } from 'node:crypto';
import type { Exchange } from '../../http/exchange.ts';
import { ageMs, type Clock, type Moment, momentNow } from '../../util/clock.ts';
import type { Account, Accounts } from '../accounts/accounts.ts';
import { isSameSecret, newSecret } from '../accounts/secrets.ts';
import { cookiesNamed } from '../api/forms.ts';

/** The name of the cookie that holds a visit's id. */
export const VISIT_COOKIE = 'davgate-visit';

/** A working day: nobody stays signed in on a machine that was left. */
const SIGNED_IN_MS = 8 * 60 * 60 * 1000;
/** People signed in at once; whoever signed in first is asked again beyond that. */
const SIGNED_IN_MAX = 10_000;

/** One browser on the pages of `/oauth2/authorize`. */
export interface Visit {
  /** Known to this browser alone. */
  readonly id: string;
  /** Who is signed in. */
  readonly account?: Account;
  /** The request for which the password was given: its query. */
  readonly signedInFor?: string;
}

interface SignedIn {
  readonly accountId: string;
  /** Whoever changes the password ends what was opened with the old one. */
  readonly passwordHash: Uint8Array;
  readonly since: Moment;
  readonly signedInFor: string;
}

/**
 * Who is signed in, by a cookie of their browser. In memory: a restart asks for passwords again.
 * A form carries a token that only this service could make for this browser and this request, so that no other
 * site's form can be sent in its place.
 */
export class Visits {
  readonly #signedIn = new Map<string, SignedIn>();
  readonly #key = randomBytes(32);

  constructor(
    private readonly accounts: Accounts,
    private readonly clock: Clock,
  ) {}

  /** The visit that a request belongs to; a new one for a browser that shows no cookie of ours. */
  of(exchange: Exchange): Visit {
    const [id] = cookiesNamed(exchange, VISIT_COOKIE);
    return id !== undefined && /^[\w-]{43}$/.test(id) ? this.#known(id) : { id: newSecret() };
  }

  /** Under another id than before: who knew that one is not signed in with it. */
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

  /** The password was given for one request: the same one again has to ask for it again. */
  spend({ id }: Visit): void {
    const signedIn = this.#signedIn.get(id);
    if (signedIn) this.#signedIn.set(id, { ...signedIn, signedInFor: '' });
  }

  signOut({ id }: Visit): void {
    this.#signedIn.delete(id);
  }

  /** The token for a form on the page of this request. */
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
