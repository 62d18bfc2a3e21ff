import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '../../util/clock.ts';
import { writeSecret } from '../../util/secret-file.ts';
import type { Registry } from '../registry/registry.ts';
import { type Account, type Accounts, type NewAccount, newNamespace } from './accounts.ts';
import type { Apps, NewApp } from './apps.ts';
import { SCOPES } from './scopes.ts';
import { hashOfPassword, isPassword, newPassword } from './secrets.ts';

/** What a client needs to work as the default account, now and after every restart. */
export interface Credentials {
  readonly email: string;
  /** Signs in at `/oauth2/authorize`; left out once somebody has set another, which is not known here. */
  readonly password?: string;
  readonly appKey: string;
  readonly appSecret: string;
  /** Good at `/oauth2/token`, with the app's key and secret, until revoked. */
  readonly refreshToken: string;
  /** An access token with all scopes that lives until revoked. */
  readonly token: string;
}

/** Of the account that a service begins with. */
export const DEFAULT_EMAIL = 'drive@davgate.invalid';

const DEFAULT_ACCOUNT: NewAccount = {
  email: DEFAULT_EMAIL,
  givenName: 'davgate',
  surname: 'Drive',
  mayDeletePermanently: true,
};

/** The operator's own: it needs nobody's leave to have users. */
const DEFAULT_APP: NewApp = { name: 'davgate', status: 'production', scopes: SCOPES, redirectUris: [] };

/** 2 TiB; `get_space_usage` tells less where the disk has less. */
const DEFAULT_LIMIT_BYTES = 2 * 1024 ** 4;

/** Secrets in clear, for their owner's eyes only: the gateway has to show them to the service again. */
const FILE_NAME = 'credentials.json';

/**
 * The default account's credentials: those of last time while they are good, new ones otherwise. On disk
 * before they are told of.
 */
export async function provision(
  registry: Registry,
  clock: Clock,
  dataDirectory: string,
): Promise<Credentials> {
  const { accounts } = registry;
  const file = join(dataDirectory, FILE_NAME);
  const kept = readCredentials(file);
  const account = accounts.withEmail(DEFAULT_ACCOUNT.email) ?? addAccount(accounts, DEFAULT_ACCOUNT);
  const password = await passwordOf(account, kept?.password);
  const credentials: Credentials = {
    email: account.email,
    ...(password !== undefined && { password }),
    ...tokensFor(registry, clock.now(), account, kept),
  };
  if (JSON.stringify(kept) !== JSON.stringify(credentials))
    await writeSecret(file, `${JSON.stringify(credentials, undefined, 2)}\n`);
  // Only now: a password that is known by its hash alone would be lost.
  if (password !== undefined && !account.passwordHash)
    accounts.change(account.id, { passwordHash: await hashOfPassword(password) });
  return credentials;
}

/** A new account; its home is made when it is first used. Throws when the address is taken. */
export function addAccount(accounts: Accounts, account: NewAccount): Account {
  return accounts.add({ limitBytes: DEFAULT_LIMIT_BYTES, ...account }, newNamespace());
}

/** The account's password, if it is known here; one that it is to have if it has none. */
async function passwordOf({ passwordHash }: Account, kept: string | undefined): Promise<string | undefined> {
  if (!passwordHash) return kept ?? newPassword();
  return kept !== undefined && (await isPassword(kept, passwordHash)) ? kept : undefined;
}

type AppCredentials = Omit<Credentials, 'email' | 'password'>;

function tokensFor(
  { apps, tokens }: Registry,
  nowMs: number,
  { id: accountId }: Account,
  kept: Credentials | undefined,
): AppCredentials {
  const isKept = kept !== undefined && apps.isSecret(kept.appKey, kept.appSecret);
  const { appKey, appSecret } = isKept ? kept : newDefaultApp(apps);
  const consent = { accountId, appKey, scopes: SCOPES };
  return {
    appKey,
    appSecret,
    refreshToken:
      isKept && tokens.isRefreshToken(kept.refreshToken)
        ? kept.refreshToken
        : tokens.grantRefreshable(nowMs, consent),
    token: isKept && tokens.bearer(nowMs, kept.token) ? kept.token : tokens.grantAccess(nowMs, consent),
  };
}

function newDefaultApp(apps: Apps): Pick<Credentials, 'appKey' | 'appSecret'> {
  const { app, secret } = apps.add(DEFAULT_APP);
  return { appKey: app.key, appSecret: secret };
}

function readCredentials(file: string): Credentials | undefined {
  let value: Partial<Record<keyof Credentials, unknown>>;
  try {
    value = JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    // Lost or damaged: new credentials do as well, as nothing else knows the old ones.
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
