import { readFileSync } from 'node:fs';
import { access, constants, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { makeFolder } from '../util/make-folder.ts';
import { writeSecret } from '../util/secret-file.ts';
import { syncDirectory } from '../util/sync-directory.ts';
import { ConfigError } from './settings.ts';

/** A login that `davgate login` stored, with the service's addresses. */
export interface StoredLogin {
  readonly apiUrl: string;
  readonly contentUrl: string;
  readonly notifyUrl: string;
  readonly appKey: string;
  readonly refreshToken: string;
  readonly accountId: string;
}

/** Returns the path of the login in a data directory. */
export function loginFile(dataDirectory: string): string {
  return join(dataDirectory, 'login.json');
}

/** Returns the stored login; `undefined` without one. Throws `ConfigError` for a file that cannot be used. */
export function readLogin(dataDirectory: string): StoredLogin | undefined {
  const file = loginFile(dataDirectory);
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException; // the file system's own errors
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    throw new ConfigError(`cannot read ${file} (${code}); check its owner and permissions`);
  }
  const login = parsedLogin(text);
  if (!login)
    throw new ConfigError(`${file}: not a login that davgate login wrote; delete it and log in again`);
  return login;
}

/** Returns `undefined` for any other text. No message may quote it, because it contains a secret. */
function parsedLogin(text: string): StoredLogin | undefined {
  let value: Partial<Record<string, unknown>> | null;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  const { apiUrl, contentUrl, notifyUrl, appKey, refreshToken, accountId } = value ?? {};
  if (!isText(apiUrl) || !isText(contentUrl) || !isText(notifyUrl)) return undefined;
  if (!isText(appKey) || !isText(refreshToken) || !isText(accountId)) return undefined;
  return { apiUrl, contentUrl, notifyUrl, appKey, refreshToken, accountId };
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

/** Makes the data directory. Throws `ConfigError` if no login can be stored there. */
export async function prepareForLogin(dataDirectory: string): Promise<void> {
  try {
    makeFolder(dataDirectory);
    await access(dataDirectory, constants.W_OK);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException; // the file system's own errors
    throw new ConfigError(
      `cannot store a login in the data directory ${dataDirectory} (${code}); choose another with --data-dir`,
    );
  }
}

/** Stores the login, durably and readable by its owner only. */
export async function writeLogin(dataDirectory: string, login: StoredLogin): Promise<void> {
  await writeSecret(loginFile(dataDirectory), `${JSON.stringify(login, undefined, 2)}\n`);
}

export async function removeLogin(dataDirectory: string): Promise<void> {
  await rm(loginFile(dataDirectory), { force: true });
  await syncDirectory(dataDirectory);
}
