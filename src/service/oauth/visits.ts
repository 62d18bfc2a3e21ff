import { createHmac } from 'node:crypto';
import type { Exchange } from '../../http/exchange.ts';
import type { Clock } from '../../util/clock.ts';
import type { Account, Accounts } from '../accounts/accounts.ts';
import { isSameSecret, newSecret } from '../accounts/secrets.ts';
import { cookiesNamed } from '../api/forms.ts';
import type { SignedInBrowsers } from './signed-in.ts';

/** The name of the cookie that holds a visit's id. */
export const VISIT_COOKIE = 'davgate-visit';

/** How long a sign-in lasts, in ms: a working day. */
const SIGNED_IN_MS = 8 * 60 * 60 * 1000;

/** One browser on the pages of `/oauth2/authorize`. */
export interface Visit {
  /** Known only to this browser. */
  readonly id: string;
  /** The account that is signed in. */
  readonly account?: Account;
  /** The query of the request for which the password was given. */
  readonly signedInFor?: string;
}

interface VisitsDeps {
  readonly accounts: Accounts;
  readonly signedIn: SignedInBrowsers;
  readonly clock: Clock;
}

/** The visits, by a cookie of the browser. */
export class Visits {
  constructor(private readonly deps: VisitsDeps) {}

  /** Returns the visit that a request belongs to; a new one for a browser without our cookie. */
  async of(exchange: Exchange): Promise<Visit> {
    const [id] = cookiesNamed(exchange, VISIT_COOKIE);
    return id !== undefined && /^[\w-]{43}$/.test(id) ? await this.#known(id) : { id: newSecret() };
  }

  /** Signs in under a new id, so that an id known to others before is not signed in (session fixation). */
  async signIn(visit: Visit, account: Account, query: string): Promise<Visit> {
    const { signedIn, clock } = this.deps;
    await this.signOut(visit);
    const id = newSecret();
    await signedIn.add(id, {
      accountId: account.id,
      passwordHash: account.passwordHash ?? Buffer.of(),
      signedInFor: query,
      expiresMs: clock.now() + SIGNED_IN_MS,
    });
    return { id, account, signedInFor: query };
  }

  /** Ends a sign-in that was for one request only. */
  async spend({ id }: Visit): Promise<void> {
    await this.deps.signedIn.spend(id);
  }

  async signOut({ id }: Visit): Promise<void> {
    await this.deps.signedIn.remove(id);
  }

  async #known(id: string): Promise<Visit> {
    const { accounts, signedIn, clock } = this.deps;
    const found = await signedIn.find(clock.now(), id);
    if (!found) return { id };
    const account = await accounts.find(found.accountId);
    const isGood =
      account?.passwordHash !== undefined && Buffer.from(account.passwordHash).equals(found.passwordHash);
    if (isGood) return { id, account, signedInFor: found.signedInFor };
    await signedIn.remove(id);
    return { id };
  }
}

/** Returns the token of a form on the page of this request. Another site cannot make it, because it does not know the id (CSRF). */
export function formTokenOf({ id }: Visit, query: string): string {
  return createHmac('sha256', id).update(query).digest('base64url');
}

export function isFormToken(visit: Visit, query: string, given: string): boolean {
  return isSameSecret(given, formTokenOf(visit, query));
}
