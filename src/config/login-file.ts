import { readFileSync } from 'node:fs';
import { access, constants, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { makeFolder } from '../util/make-folder.ts';
import { syncDirectory, writeSecret } from '../util/secret-file.ts';
import { ConfigError } from './settings.ts';

/** An account that `davgate login` connected, and where its service is. */
export interface StoredLogin {
  readonly apiUrl: string;
  readonly contentUrl: string;
  readonly notifyUrl: string;
  readonly appKey: string;
  readonly refreshToken: string;
  readonly accountId: string;
}

const KEYS = ['apiUrl', 'contentUrl', 'notifyUrl', 'appKey', 'refreshToken', 'accountId'] as const;

/** Where the login of a data directory is kept. */
export function loginFile(dataDirectory: string): string {
  return join(dataDirectory, 'login.json');
}

/** `undefined` where nobody has logged in. Throws `ConfigError` for a file that cannot be used. */
export function readLogin(dataDirectory: string): StoredLogin | undefined {
  const file = loginFile(dataDirectory);
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException; // the file system's own errors
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    throw new ConfigError(`${file}: cannot be read (${code}); check its owner and its rights`);
  }
  const login = parsedLogin(text);
  if (!login) throw new ConfigError(`${file}: not as davgate login wrote it; delete it, and log in again`);
  return login;
}

/** Not quoted in any message: it holds a secret. */
function parsedLogin(text: string): StoredLogin | undefined {
  let value: Partial<Record<string, unknown>> | null;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  const isWhole = KEYS.every((key) => typeof value?.[key] === 'string' && value[key] !== '');
  return isWhole ? (value as unknown as StoredLogin) : undefined; // each key was looked at
}

/** Throws `ConfigError` where no login could be kept. */
export async function prepareForLogin(dataDirectory: string): Promise<void> {
  try {
    makeFolder(dataDirectory);
    await access(dataDirectory, constants.W_OK);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException; // the file system's own errors
    throw new ConfigError(
      `cannot keep a login in the data directory ${dataDirectory} (${code}); choose another with --data-dir`,
    );
  }
}

/** On disk, and for its owner alone, when it returns. */
export async function writeLogin(dataDirectory: string, login: StoredLogin): Promise<void> {
  await writeSecret(loginFile(dataDirectory), `${JSON.stringify(login, undefined, 2)}\n`);
}

export async function removeLogin(dataDirectory: string): Promise<void> {
  await rm(loginFile(dataDirectory), { force: true });
  await syncDirectory(dataDirectory);
}
