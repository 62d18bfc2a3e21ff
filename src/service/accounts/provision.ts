import { readFileSync } from 'node:fs';
import { open, rename } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Clock } from '../../util/clock.ts';
import type { Storage } from '../storage/storage.ts';
import { type Account, type Accounts, type NewAccount, newNamespace } from './accounts.ts';
import { SCOPES } from './scopes.ts';
import type { Tokens } from './tokens.ts';

/** What a client needs to work as the default account, now and after every restart. */
export interface Credentials {
  readonly appKey: string;
  readonly appSecret: string;
  /** Good at `/oauth2/token`, with the app's key and secret, until revoked. */
  readonly refreshToken: string;
  /** An access token with all scopes that lives until revoked. */
  readonly token: string;
}

const DEFAULT_ACCOUNT: NewAccount = {
  email: 'drive@davgate.invalid',
  givenName: 'davgate',
  surname: 'Drive',
  mayDeletePermanently: true,
};

/** 2 TiB; `get_space_usage` tells less where the disk has less. */
const DEFAULT_LIMIT_BYTES = 2 * 1024 ** 4;

/** Secrets in clear, for their owner's eyes only: the gateway has to show them to the service again. */
const FILE_NAME = 'credentials.json';

export interface Registry {
  readonly accounts: Accounts;
  readonly tokens: Tokens;
  readonly storage: Storage;
  readonly clock: Clock;
}

/**
 * The default account's credentials: those of last time while they are good, new ones otherwise. On disk
 * before they are told of.
 */
export async function provision(registry: Registry, dataDirectory: string): Promise<Credentials> {
  const { accounts, tokens, clock } = registry;
  const file = join(dataDirectory, FILE_NAME);
  const kept = readCredentials(file);
  const app = kept && tokens.isApp(kept.appKey, kept.appSecret) ? kept : tokens.addApp();
  const account = accounts.withEmail(DEFAULT_ACCOUNT.email) ?? addAccount(registry, DEFAULT_ACCOUNT);
  const isKept = app === kept;
  const credentials: Credentials = {
    appKey: app.appKey,
    appSecret: app.appSecret,
    refreshToken:
      isKept && tokens.isRefreshToken(kept.refreshToken)
        ? kept.refreshToken
        : tokens.grantRefreshable(account.id, app.appKey, SCOPES),
    token:
      isKept && tokens.bearer(clock.now(), kept.token)
        ? kept.token
        : tokens.grantAccess(account.id, app.appKey, SCOPES),
  };
  const isUnchanged =
    kept && kept.refreshToken === credentials.refreshToken && kept.token === credentials.token;
  if (!isUnchanged) await writeCredentials(file, credentials);
  return credentials;
}

/** A new account with its empty home. Killed in between, all that is left over is a home without owner. */
export function addAccount(
  { accounts, storage }: Pick<Registry, 'accounts' | 'storage'>,
  account: NewAccount,
  limitBytes = DEFAULT_LIMIT_BYTES,
): Account {
  const namespace = newNamespace();
  storage.createNamespace(namespace, limitBytes);
  return accounts.add(account, namespace);
}

function readCredentials(file: string): Credentials | undefined {
  let value: Partial<Record<keyof Credentials, unknown>>;
  try {
    value = JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    // Lost or damaged: new credentials do as well, as nothing else knows the old ones.
    return undefined;
  }
  const { appKey, appSecret, refreshToken, token } = value;
  const all = [appKey, appSecret, refreshToken, token];
  if (!all.every((one) => typeof one === 'string')) return undefined;
  return { appKey, appSecret, refreshToken, token } as Credentials;
}

/** Whole or not at all: written beside, flushed, and put in place. */
async function writeCredentials(file: string, credentials: Credentials): Promise<void> {
  const written = `${file}.new`;
  const handle = await open(written, 'w', 0o600);
  try {
    await handle.writeFile(`${JSON.stringify(credentials, undefined, 2)}\n`);
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(written, file);
  const directory = await open(dirname(file), 'r');
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}
