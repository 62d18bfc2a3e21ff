import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Drive, OwnUploadLinks } from '../browser/route.ts';
import type { OpenUploadLink } from '../browser/sending.ts';
import { guessesInMemory } from '../http/guess-counter.ts';
import { PasswordGate } from '../http/password-gate.ts';
import { hashPassword, verifyPassword } from '../http/passwords.ts';
import type { UploadLinkStore, UsedUploadLink } from '../state/upload-links.ts';
import type { Clock } from '../util/clock.ts';

/** Maximum number of upload links of a user. */
const PER_USER_MAX = 100;

/** Random bytes of a token. */
const TOKEN_BYTES = 20;
const FORM = /^[\w-]{27}$/;

/** Maximum wait after wrong passwords for one link, in ms. A sender who must wait is told so at once. */
const LONGEST_WAIT_MS = 60_000;

export interface UploadLinksOptions {
  readonly store: UploadLinkStore;
  readonly clock: Clock;
  /** Returns the drive that a user's name alone stands for now. */
  readonly driveOf: (user: string | undefined) => Drive | undefined;
  /** The address of the page for senders. */
  readonly pageUrl: () => string;
}

/** Links by which people without a login send files into a folder of a user, with that user's rights at that time. */
export class UploadLinks {
  readonly #gate: PasswordGate;

  constructor(private readonly options: UploadLinksOptions) {
    this.#gate = new PasswordGate({
      clock: options.clock,
      guesses: guessesInMemory(options.clock, LONGEST_WAIT_MS),
      delayMsMax: 0,
      // Nothing is delayed.
      closing: new AbortController().signal,
    });
  }

  /** Returns what a user can do with their own; `undefined` if the drive does not follow from the user's name alone. */
  of(user: string | undefined, drive: Drive): OwnUploadLinks | undefined {
    const { store, clock, driveOf, pageUrl } = this.options;
    if (driveOf(user)?.rights !== drive.rights) return undefined;
    const owner = user ?? '';
    return {
      list: async () =>
        (await store.all(owner)).map(({ tokenHash, passwordHash, user: _, ...shown }) => ({
          ...shown,
          hasPassword: passwordHash !== undefined,
        })),
      async make({ path, label, password, expiresMs, sizeBytesMax }) {
        const token = randomBytes(TOKEN_BYTES).toString('base64url');
        const link = {
          ...{ id: randomBytes(9).toString('base64url'), user: owner, tokenHash: hashOf(token) },
          ...{ label, path, createdMs: clock.now() },
          ...(password !== undefined && { passwordHash: await hashPassword(password) }),
          ...(expiresMs !== undefined && { expiresMs }),
          ...(sizeBytesMax !== undefined && { sizeBytesMax }),
        };
        return (await store.add(link, PER_USER_MAX)) ? `${pageUrl()}#${token}` : undefined;
      },
      end: (id) => store.remove(owner, id),
    };
  }

  /** Returns the link with this token, if it has not ended and its user still exists. */
  async open(token: string): Promise<OpenUploadLink | undefined> {
    if (!FORM.test(token)) return undefined;
    const { store, clock, driveOf } = this.options;
    const link = await store.find(hashOf(token));
    if (!link || (link.expiresMs ?? Number.POSITIVE_INFINITY) <= clock.now()) return undefined;
    const drive = driveOf(link.user || undefined);
    return drive && this.#opened(link, drive);
  }

  #opened(link: UsedUploadLink, drive: Drive): OpenUploadLink {
    const { store } = this.options;
    const { id, label, path, passwordHash, sizeBytesMax, usedBytes } = link;
    return {
      ...{ id, label, path, sizeBytesMax, usedBytes, drive },
      needsPassword: passwordHash !== undefined,
      isKey: (key) => passwordHash !== undefined && isEqual(key, keyOf(link.tokenHash, passwordHash)),
      unlock: async (password, address) => {
        if (passwordHash === undefined) return undefined;
        const attempt = { name: id, address, exists: true };
        const checked = await this.#gate.check(attempt, () => verifyPassword(password, passwordHash));
        if (typeof checked === 'object') return checked;
        return checked ? keyOf(link.tokenHash, passwordHash) : undefined;
      },
      use: (bytes) => store.use(link, bytes),
      takeBack: (bytes) => store.takeBack(link, bytes),
    };
  }
}

/** The proof that a sender knows the password: only davgate knows the hash, which has a salt. */
function keyOf(tokenHash: string, passwordHash: string): string {
  return createHmac('sha256', passwordHash).update(tokenHash).digest('base64url');
}

function isEqual(one: string, other: string): boolean {
  return timingSafeEqual(Buffer.from(hashOf(one)), Buffer.from(hashOf(other)));
}

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('base64url');
}
