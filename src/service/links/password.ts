import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Clock } from '../../util/clock.ts';
import type { Log } from '../../util/log.ts';
import { neighborhoodOf } from '../../util/networks.ts';
import { SingleFlight } from '../../util/single-flight.ts';
import { passwordGate } from '../accounts/guess-limits.ts';
import { isPassword, isSameSecret } from '../accounts/secrets.ts';
import type { Link } from './links.ts';

const KEY_BYTES = 32;
/** Links whose password is known again at once; the oldest is forgotten beyond that. */
const OPENED_MAX = 10_000;

/** An object: the client has guessed too often. */
type PasswordOutcome = 'right' | 'wrong' | { readonly retryAfterMs: number };

/** Lets people into links that have a password, and keeps programs from trying many. */
export interface LinkPasswords {
  check(link: Link, password: string, address: string): Promise<PasswordOutcome>;
  /** What a browser shows later to say that it has given the password. Ends with the password itself. */
  pass(link: Link): string;
  isPass(link: Link, pass: string): boolean;
}

export function linkPasswords(clock: Clock, log: Log, closing: AbortSignal): LinkPasswords {
  const gate = passwordGate(clock, closing);
  /** Digests by token: who has the password is held up neither by those who guess nor, call after call, by its hash. */
  const opened = new Map<string, Buffer>();
  /** By digest and client. A program that has the password makes many calls at once, which are one guess and not as many. */
  const underWay = new SingleFlight<string, PasswordOutcome>();
  const key = randomBytes(KEY_BYTES);

  /** With the link's present password in it: another makes another. */
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
