import { createHmac, timingSafeEqual } from 'node:crypto';
import type { Clock } from '../../util/clock.ts';
import { guessesOf } from '../accounts/guesses.ts';
import { isPassword } from '../accounts/secrets.ts';
import type { Link } from './links.ts';

/** Lets people into links that have a password, and keeps programs from trying many. */
export interface LinkPasswords {
  check(link: Link, password: string): Promise<'right' | 'wrong' | 'too-many'>;
  /** What a browser shows later to say that it has given the password. Ends with the password itself. */
  pass(link: Link): string;
  isPass(link: Link, pass: string): boolean;
}

export function linkPasswords(clock: Clock): LinkPasswords {
  const guesses = guessesOf(clock);

  function pass(link: Link): string {
    return createHmac('sha256', link.passwordHash ?? '')
      .update(link.token)
      .digest('base64url');
  }

  return {
    async check(link, password) {
      if (guesses.isTooMany(link.token)) return 'too-many';
      return link.passwordHash && (await isPassword(password, link.passwordHash)) ? 'right' : 'wrong';
    },
    pass,
    isPass(link, given) {
      const expected = Buffer.from(pass(link));
      const shown = Buffer.from(given);
      return shown.length === expected.length && timingSafeEqual(shown, expected);
    },
  };
}
