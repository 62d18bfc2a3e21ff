import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Log } from '../../util/log.ts';
import { neighborhoodOf } from '../../util/networks.ts';
import { SingleFlight } from '../../util/single-flight.ts';
import { type PasswordGateDeps, passwordGate } from '../accounts/guess-limits.ts';
import { isPassword, isSameSecret } from '../accounts/secrets.ts';
import type { Link } from './links.ts';

const KEY_BYTES = 32;
/** Maximum number of links whose last correct password is remembered; the oldest is dropped. */
const OPENED_MAX = 10_000;

/** The result of a check; an object when the client has guessed too often. */
type PasswordOutcome = 'right' | 'wrong' | { readonly retryAfterMs: number };

/** Checks the passwords of links, and limits guessing. */
export interface LinkPasswords {
  check(link: Link, password: string, address: string): Promise<PasswordOutcome>;
  /**
   * Returns what a browser's cookie shows later as proof of the password. It becomes invalid when the password changes.
   */
  pass(link: Link): string;
  isPass(link: Link, pass: string): boolean;
}

export interface LinkPasswordsDeps extends PasswordGateDeps {
  readonly log: Log;
}

export function linkPasswords({ log, ...deps }: LinkPasswordsDeps): LinkPasswords {
  const gate = passwordGate('link', deps);
  /**
   * Digests of correct passwords by token: a client with the password waits neither for the delays of guessing nor for
   * a hash at each call.
   */
  const opened = new Map<string, Buffer>();
  /**
   * Running checks by digest and client: a program with the password may send many calls at once, which count as one
   * guess.
   */
  const underWay = new SingleFlight<string, PasswordOutcome>();
  const key = randomBytes(KEY_BYTES);

  /** Computes a digest that includes the link's current password hash, so that it changes with the password. */
  function digest({ token, passwordHash = new Uint8Array() }: Link, password: string): Buffer {
    return createHmac('sha256', key).update(token).update(passwordHash).update(password).digest();
  }

  function remember(token: string, shown: Buffer): void {
    opened.delete(token);
    opened.set(token, shown);
    const [oldest] = opened.keys();
    if (opened.size > OPENED_MAX && oldest !== undefined) opened.delete(oldest);
  }

  async function compare(
    link: Link,
    password: string,
    { address, shown }: { readonly address: string; readonly shown: Buffer },
  ): Promise<PasswordOutcome> {
    const { token, accountId: account, passwordHash } = link;
    const outcome = await gate.check(
      { name: token, address, exists: true },
      async () => passwordHash !== undefined && (await isPassword(password, passwordHash)),
    );
    if (typeof outcome === 'object') return outcome;
    if (!outcome) {
      log.warn('wrong password for a shared link', { address, account });
      return 'wrong';
    }
    log.info('a shared link was opened with its password', { address, account });
    remember(token, shown);
    return 'right';
  }

  function pass(link: Link): string {
    return createHmac('sha256', link.passwordHash ?? '')
      .update(link.token)
      .digest('base64url');
  }

  return {
    async check(link, password, address) {
      const shown = digest(link, password);
      const known = opened.get(link.token);
      if (known && timingSafeEqual(known, shown)) return 'right';
      return await underWay.run(`${shown.toString('base64')} ${neighborhoodOf(address)}`, () =>
        compare(link, password, { address, shown }),
      );
    },
    pass,
    isPass: (link, given) => isSameSecret(given, pass(link)),
  };
}
