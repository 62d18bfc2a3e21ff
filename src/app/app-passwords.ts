import { createHash, randomBytes } from 'node:crypto';
import type { OwnAppPasswords } from '../browser/route.ts';
import type { AppLogin } from '../http/credentials.ts';
import type { AppPassword, AppPasswordStore } from '../state/app-passwords.ts';
import type { Clock } from '../util/clock.ts';

/** Maximum number of app passwords of a user. */
const PER_USER_MAX = 50;

/** Random bytes of an app password: 160 bits are 32 characters. */
const PASSWORD_BYTES = 20;

/** Lower-case letters and digits that are not mistaken for each other (RFC 4648 §6), in groups that people can type. */
const DIGITS = 'abcdefghijklmnopqrstuvwxyz234567';
const FORM = /^[a-z2-7]{4}(-[a-z2-7]{4}){7}$/;

/** How exact the time of the last use is, in ms: not every login should write to the disk. */
const USE_MS = 10 * 60_000;

/** Passwords that users make for single programs, and that they can end one by one. */
export class AppPasswords {
  readonly #store: AppPasswordStore;
  readonly #clock: Clock;
  /** Those that this gateway has ended since its start, for the logins that are remembered. */
  readonly #ended = new Set<string>();

  constructor(store: AppPasswordStore, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  /** Returns the login that a user's password is for; `undefined` if it is no app password of this user. */
  async check(user: string, password: string): Promise<AppLogin | undefined> {
    if (!FORM.test(password)) return undefined;
    const hash = hashOf(password);
    // A comparison of hashes tells nothing about the password by its time.
    const found = (await this.#store.all(user)).find((one) => one.hash === hash);
    if (!found || this.#ended.has(found.id)) return undefined;
    this.#noteUse(user, found);
    return { isOver: () => this.#ended.has(found.id) };
  }

  /** Returns what a user can do with their own. */
  of(user: string): OwnAppPasswords {
    return {
      list: async () => (await this.#store.all(user)).map(({ hash, ...shown }) => shown),
      make: async (name) => {
        const password = newPassword();
        const id = randomBytes(9).toString('base64url');
        const made = { id, name, hash: hashOf(password), createdMs: this.#clock.now() };
        return (await this.#store.add(user, made, PER_USER_MAX)) ? password : undefined;
      },
      end: async (id) => {
        const isThere = await this.#store.remove(user, id);
        if (isThere) this.#ended.add(id);
        return isThere;
      },
    };
  }

  #noteUse(user: string, { id, usedMs = 0 }: AppPassword): void {
    const now = this.#clock.now();
    // A login does not fail when the time cannot be noted, as on a full disk.
    if (now - usedMs >= USE_MS) this.#store.use(user, id, now).catch(() => undefined);
  }
}

function newPassword(): string {
  const digits = [...randomBytes(PASSWORD_BYTES)].map((byte) => byte.toString(2).padStart(8, '0')).join('');
  const text = digits.replace(/.{5}/g, (bits) => DIGITS[Number.parseInt(bits, 2)] ?? '');
  return text.replace(/.{4}(?=.)/g, '$&-');
}

function hashOf(password: string): string {
  return createHash('sha256').update(password).digest('base64url');
}
