import { createHmac, timingSafeEqual } from 'node:crypto';
import type { Clock } from '../../util/clock.ts';
import { isPassword } from '../accounts/secrets.ts';
import type { Link } from './links.ts';

/** More guesses than a person needs, fewer than a program wants. */
const GUESSES_PER_MINUTE = 10;
const MINUTE_MS = 60_000;
/** Links whose guesses are counted at once; the oldest count is forgotten beyond that. */
const COUNTED_MAX = 10_000;

/** Lets people into links that have a password, and keeps programs from trying many. */
export interface LinkPasswords {
  check(link: Link, password: string): Promise<'right' | 'wrong' | 'too-many'>;
  /** What a browser shows later to say that it has given the password. Ends with the password itself. */
  pass(link: Link): string;
  isPass(link: Link, pass: string): boolean;
}

export function linkPasswords(clock: Clock): LinkPasswords {
  const guesses = new Map<string, { sinceMs: number; count: number }>();

  function isTooMany(token: string): boolean {
    const nowMs = clock.now();
    const counted = guesses.get(token);
    if (!counted || nowMs - counted.sinceMs >= MINUTE_MS) {
      guesses.delete(token);
      guesses.set(token, { sinceMs: nowMs, count: 1 });
      const [oldest] = guesses.keys();
      if (guesses.size > COUNTED_MAX && oldest !== undefined) guesses.delete(oldest);
      return false;
    }
    counted.count++;
    return counted.count > GUESSES_PER_MINUTE;
  }

  function pass(link: Link): string {
    return createHmac('sha256', link.passwordHash ?? '')
      .update(link.token)
      .digest('base64url');
  }

  return {
    async check(link, password) {
      if (isTooMany(link.token)) return 'too-many';
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
