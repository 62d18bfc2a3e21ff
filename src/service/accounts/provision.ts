import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '../../util/clock.ts';
import { writeSecret } from '../../util/secret-file.ts';
import type { Directory } from '../directory/directory.ts';
import { type Account, type Accounts, type NewAccount, newNamespace } from './accounts.ts';
import type { Apps, NewApp } from './apps.ts';
import { SCOPES } from './scopes.ts';
import { hashOfSecret, isPassword, newPassword } from './secrets.ts';

/** Credentials of the default account, valid now and after every restart. */
export interface Credentials {
  readonly email: string;
  /** Password for `/oauth2/authorize`; absent after it was changed, because only its hash is stored. */
  readonly password?: string;
  readonly appKey: string;
  readonly appSecret: string;
  /** For `/oauth2/token`, with the app's key and secret; valid until revoked. */
  readonly refreshToken: string;
  /** Access token with all scopes; valid until revoked. */
  readonly token: string;
}

/** Address of the account that every service has from its first start. */
export const DEFAULT_EMAIL = 'drive@davgate.invalid';

const DEFAULT_ACCOUNT: NewAccount = {
  email: DEFAULT_EMAIL,
  givenName: 'davgate',
  surname: 'Drive',
  mayDeletePermanently: true,
};

/** The operator's own app, in production because its users need no approval. */
const DEFAULT_APP: NewApp = { name: 'davgate', status: 'production', scopes: SCOPES, redirectUris: [] };

/** Quota of 2 TiB; `get_space_usage` reports less when the disk has less. */
const DEFAULT_LIMIT_BYTES = 2 * 1024 ** 4;

/**
 * Returns the path of the file with the default account's credentials in clear text, which the gateway needs to log in.
 * Readable by its owner only.
 */
export function credentialsFileIn(dataDirectory: string): string {
  return join(dataDirectory, 'credentials.json');
}

/**
 * Returns the default account's credentials: those of the last start while they are valid, otherwise new ones. They are
 * on disk before they are returned.
 */
export async function provision(
  directory: Directory,
  clock: Clock,
  dataDirectory: string,
): Promise<Credentials> {
  const { accounts } = directory;
  const file = credentialsFileIn(dataDirectory);
  const kept = readCredentials(file);
  const account = (await accounts.withEmail(DEFAULT_ACCOUNT.email)) ?? (await addDefaultAccount(accounts));
  const password = await passwordOf(account, kept?.password);
  const credentials: Credentials = {
    email: account.email,
    ...(password !== undefined && { password }),
    ...(await tokensFor(directory, clock.now(), account, kept)),
  };
  if (JSON.stringify(kept) !== JSON.stringify(credentials)) await write(file, credentials);
  if (password === undefined || account.passwordHash) return credentials;
  // Set after the file was written: otherwise a crash could leave a password that is known only by its hash. The file has
  // the password in clear text, so a slow hash would protect nothing and only delay each start.
  if (await accounts.addPassword(account.id, hashOfSecret(password))) return credentials;
  // Another process that starts at the same time was first, and only its file has the password.
  const { password: _, ...others } = credentials;
  await write(file, others);
  return others;
}

async function write(file: string, credentials: Credentials): Promise<void> {
  await writeSecret(file, `${JSON.stringify(credentials, undefined, 2)}\n`);
}

/** Another process may add it at the same time. */
async function addDefaultAccount(accounts: Accounts): Promise<Account> {
  try {
    return await addAccount(accounts, DEFAULT_ACCOUNT);
  } catch (failure) {
    const account = await accounts.withEmail(DEFAULT_ACCOUNT.email);
    if (!account) throw failure;
    return account;
  }
}

/**
 * Adds an account, in a team if one is named; its home is created at its first use. Throws when the address is taken.
 */
export async function addAccount(accounts: Accounts, account: NewAccount, team?: string): Promise<Account> {
  return await accounts.add({ limitBytes: DEFAULT_LIMIT_BYTES, ...account }, newNamespace(), team);
}

/** Returns the account's password if the file has it, or a new one for an account without a password. */
async function passwordOf({ passwordHash }: Account, kept: string | undefined): Promise<string | undefined> {
  if (!passwordHash) return kept ?? newPassword();
  return kept !== undefined && (await isPassword(kept, passwordHash)) ? kept : undefined;
}

type AppCredentials = Omit<Credentials, 'email' | 'password'>;

async function tokensFor(
  { apps, tokens }: Directory,
  nowMs: number,
  { id: accountId }: Account,
  kept: Credentials | undefined,
): Promise<AppCredentials> {
  const isKept = kept !== undefined && (await apps.isSecret(kept.appKey, kept.appSecret));
  const { appKey, appSecret } = isKept ? kept : await newDefaultApp(apps);
  const consent = { accountId, appKey, scopes: SCOPES };
  return {
    appKey,
    appSecret,
    refreshToken:
      isKept && (await tokens.isRefreshToken(kept.refreshToken))
        ? kept.refreshToken
        : await tokens.grantRefreshable(nowMs, consent),
    token:
      isKept && (await tokens.bearer(nowMs, kept.token))
        ? kept.token
        : await tokens.grantAccess(nowMs, consent),
  };
}

async function newDefaultApp(apps: Apps): Promise<Pick<Credentials, 'appKey' | 'appSecret'>> {
  const { app, secret } = await apps.add(DEFAULT_APP);
  return { appKey: app.key, appSecret: secret };
}

function readCredentials(file: string): Credentials | undefined {
  let value: Partial<Record<keyof Credentials, unknown>>;
  try {
    value = JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    // Missing or damaged: new credentials are fine, because nobody else knows the old ones.
    return undefined;
  }
  const { email = '', password, appKey, appSecret, refreshToken, token } = value;
  const all = [email, appKey, appSecret, refreshToken, token, password ?? ''];
  if (!all.every((one) => typeof one === 'string')) return undefined;
  return {
    email,
    ...(password !== undefined && { password }),
    appKey,
    appSecret,
    refreshToken,
    token,
  } as Credentials;
}
