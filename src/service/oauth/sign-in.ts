import type { Clock } from '../../util/clock.ts';
import type { Account, Accounts } from '../accounts/accounts.ts';
import { guessesOf } from '../accounts/guesses.ts';
import { hashOfPassword, isPassword, newPassword } from '../accounts/secrets.ts';

/** Passwords that are compared at once: each takes tens of milliseconds of a thread that files need too. */
const COMPARED_MAX = 4;

/** Lets people in by the address and the password of their account, and keeps programs from trying many. */
export interface SignIn {
  check(email: string, password: string): Promise<Account | 'wrong' | 'too-many'>;
}

export function signInTo(accounts: Accounts, clock: Clock): SignIn {
  const guesses = guessesOf(clock);
  let compared = 0;
  // Compared where there is no account or no password, so that the time taken does not tell which there are.
  let decoy: Promise<Uint8Array> | undefined;

  async function isRight(account: Account | undefined, password: string): Promise<boolean> {
    decoy ??= hashOfPassword(newPassword());
    const isEqual = await isPassword(password, account?.passwordHash ?? (await decoy));
    return isEqual && account?.passwordHash !== undefined;
  }

  return {
    async check(email, password) {
      const address = email.trim();
      const name = address.toLowerCase();
      // Whoever has to wait for others' passwords to be compared has made no guess.
      if (compared >= COMPARED_MAX || guesses.isTooMany(name)) return 'too-many';
      const account = accounts.withEmail(address);
      compared++;
      const isIn = await isRight(account, password).finally(() => {
        compared--;
      });
      if (!account || !isIn) return 'wrong';
      guesses.forget(name);
      return account;
    },
  };
}
