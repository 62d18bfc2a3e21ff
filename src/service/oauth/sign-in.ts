import type { Log } from '../../util/log.ts';
import type { Account, Accounts } from '../accounts/accounts.ts';
import { type PasswordGateDeps, passwordGate } from '../accounts/guess-limits.ts';
import { hashOfPassword, isPassword, newPassword } from '../accounts/secrets.ts';

/** Maximum length of a wrong e-mail address in the log, in characters. */
const LOGGED_EMAIL_MAX = 100;

/** Checks an account's e-mail address and password, and limits guessing. */
export interface SignIn {
  /** `address` is the client's IP address. */
  check(
    email: string,
    password: string,
    address: string,
  ): Promise<Account | 'wrong' | { readonly retryAfterMs: number }>;
}

export interface SignInDeps extends PasswordGateDeps {
  readonly accounts: Accounts;
  readonly log: Log;
}

export function signInTo({ accounts, log, ...deps }: SignInDeps): SignIn {
  const gate = passwordGate('account', deps);
  // Compared when there is no account or no password, so that the time does not reveal which exist.
  let decoy: Promise<Uint8Array> | undefined;

  async function isRight(account: Account | undefined, password: string): Promise<boolean> {
    decoy ??= hashOfPassword(newPassword());
    const isEqual = await isPassword(password, account?.passwordHash ?? (await decoy));
    return isEqual && account?.passwordHash !== undefined;
  }

  return {
    async check(typed, password, address) {
      const email = typed.trim();
      const account = await accounts.withEmail(email);
      const attempt = { name: email.toLowerCase(), address, exists: account !== undefined };
      const outcome = await gate.check(attempt, () => isRight(account, password));
      if (typeof outcome === 'object') return outcome;
      if (outcome && account) {
        log.info('signed in', { address, email: account.email, account: account.id });
        return account;
      }
      log.warn('sign-in failed', { address, email: email.slice(0, LOGGED_EMAIL_MAX), account: account?.id });
      return 'wrong';
    },
  };
}
