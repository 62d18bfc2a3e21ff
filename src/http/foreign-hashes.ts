import { createHash, timingSafeEqual } from 'node:crypto';

/**
 * Password hashes that other servers' files contain. Even the weak ones are accepted: davgate slows guesses at its own door
 * whatever the hash is, and a new file would not protect the old one. Those of crypt(3) are not: its DES form takes all
 * passwords with the same first 8 characters for equal, and Node has none of its forms.
 */
interface Scheme {
  readonly form: RegExp;
  /** `hash` matches `form`. */
  readonly verify: (password: string, hash: string) => boolean | Promise<boolean>;
}

const SCHEMES: readonly Scheme[] = [
  { form: /^\$2[aby]\$\d\d\$[./A-Za-z0-9]{53}$/, verify: verifyBcrypt },
  { form: /^\$apr1\$[./A-Za-z0-9]{1,8}\$[./A-Za-z0-9]{22}$/, verify: verifyApr1 },
  { form: /^\{SHA\}[A-Za-z0-9+/]{27}=$/, verify: verifySha1 },
];

/** Maximum cost of a bcrypt hash, as of `htpasswd -C`: one comparison takes about 10 s. Each further one doubles that. */
const BCRYPT_COST_MAX = 17;

/** Maximum length of a password in bytes, as of `htpasswd`. It bounds the time of apr1, which is computed at once. */
const APR1_PASSWORD_BYTES_MAX = 255;

const APR1_ROUNDS = 1_000;

/** Returns the scheme of a hash that another program made; `undefined` for any other text. */
export function foreignScheme(hash: string): Scheme | undefined {
  const scheme = SCHEMES.find(({ form }) => form.test(hash));
  return scheme?.verify === verifyBcrypt && bcryptCost(hash) > BCRYPT_COST_MAX ? undefined : scheme;
}

function bcryptCost(hash: string): number {
  return Number(hash.slice(4, 6));
}

/**
 * Compares in the thread pool, as scrypt does: bcrypt in JavaScript would hold the event loop for 100 ms and more. The
 * package contains binaries for all versions of Node, so an install compiles nothing.
 */
async function verifyBcrypt(password: string, hash: string): Promise<boolean> {
  const { default: bcrypt } = await import('bcrypt');
  // $2a$ and $2y$ name the same algorithm. The library knows no $2y$, and copies an old mistake of OpenBSD for $2a$.
  return bcrypt.compare(password, hash.replace(/^\$2[ay]/, '$2b'));
}

function verifySha1(password: string, hash: string): boolean {
  return isEqual(`{SHA}${createHash('sha1').update(password).digest('base64')}`, hash);
}

/** Apache's variant of the MD5-based crypt (apr_md5_encode of the Apache Portable Runtime). It takes about 3 ms. */
function verifyApr1(text: string, hash: string): boolean {
  const salt = Buffer.from(hash.split('$')[2] ?? '');
  const password = Buffer.from(text);
  if (password.length > APR1_PASSWORD_BYTES_MAX) return false;
  let digest = md5(password, salt, password);
  const first: Uint8Array[] = [password, Buffer.from('$apr1$'), salt];
  for (let left = password.length; left > 0; left -= 16) first.push(digest.subarray(0, Math.min(16, left)));
  for (let bits = password.length; bits > 0; bits >>= 1)
    first.push(bits & 1 ? Buffer.of(0) : password.subarray(0, 1));
  digest = md5(...first);
  for (let round = 0; round < APR1_ROUNDS; round += 1) {
    const isOdd = round % 2 === 1;
    digest = md5(
      isOdd ? password : digest,
      ...(round % 3 === 0 ? [] : [salt]),
      ...(round % 7 === 0 ? [] : [password]),
      isOdd ? digest : password,
    );
  }
  return isEqual(apr1Text(digest), hash.slice(hash.lastIndexOf('$') + 1));
}

function md5(...parts: readonly Uint8Array[]): Buffer {
  const hash = createHash('md5');
  for (const part of parts) hash.update(part);
  return hash.digest();
}

const APR1_DIGITS = './0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** The bytes of the digest in the order in which they are written: three are four digits, the lowest first. */
const APR1_ORDER = [[0, 6, 12], [1, 7, 13], [2, 8, 14], [3, 9, 15], [4, 10, 5], [11]] as const;

function apr1Text(digest: Buffer): string {
  return APR1_ORDER.map((group) => {
    let value = 0;
    for (const index of group) value = value * 256 + (digest[index] ?? 0);
    let text = '';
    // Six bits a digit: a group of one byte has two digits.
    for (let bits = group.length * 8; bits > 0; bits -= 6) {
      text += APR1_DIGITS[value & 63];
      value >>= 6;
    }
    return text;
  }).join('');
}

function isEqual(one: string, other: string): boolean {
  const [first, second] = [Buffer.from(one), Buffer.from(other)];
  return first.length === second.length && timingSafeEqual(first, second);
}
