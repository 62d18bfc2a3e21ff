import type { Config } from '../config/configuration.ts';
import { type MadeUpPassword, madeUpPassword } from '../config/password-file.ts';
import { ConfigError } from '../config/settings.ts';
import { firstDriveOf } from '../config/users.ts';
import type { User } from '../http/credentials.ts';
import { hashPassword, type PasswordCost, RANDOM_PASSWORD_COST, verifyPassword } from '../http/passwords.ts';
import { makeFolder } from '../util/make-folder.ts';
import { readHtpasswd } from './htpasswd.ts';

/** The users that may log in. */
export interface Logins {
  /** `undefined`: no login is needed. */
  readonly users: readonly User[] | undefined;
  /** The password of the only user, if the configuration sets none. */
  readonly madeUpPassword: MadeUpPassword | undefined;
}

/**
 * Hashes the configured passwords, reads those of the htpasswd file, and makes up a password for a user without one. A user
 * in `known` whose password is the same keeps the hash. Throws `ConfigError`.
 */
export async function loginsOf(
  { users: configured, dataDirectory, htpasswdFile, authUrl, oidc, drives }: Config,
  known: readonly User[] = [],
): Promise<Logins> {
  makeDataDirectory(dataDirectory);
  let madeUp: MadeUpPassword | undefined;
  const users: User[] = [];
  const hashOf = async (name: string, password: string, cost?: PasswordCost): Promise<string> => {
    const before = known.find((user) => user.name === name)?.passwordHash;
    const isSame = before !== undefined && (await verifyPassword(password, before));
    return isSame ? before : hashPassword(password, cost);
  };
  const listed = new Map(htpasswdFile === undefined ? [] : await readHtpasswd(htpasswdFile));
  for (const { name, grants, bandwidth, password, passwordHash, isListedElsewhere } of configured ?? []) {
    const user = { name, grants, ...(bandwidth && { bandwidth }) };
    const hash = listed.get(name);
    listed.delete(name);
    if (isListedElsewhere) {
      // A user who was removed from the file can no longer log in, unless the external check or the provider knows the name.
      if (hash !== undefined) users.push(withHash(user, hash));
      else if (authUrl !== undefined || oidc) users.push(user);
    } else if (hash !== undefined)
      throw new ConfigError(
        `the user ${name} has one password in ${htpasswdFile} and another in the settings; remove one`,
      );
    else if (passwordHash) users.push(withHash(user, passwordHash));
    else if (password) users.push(withHash(user, await hashOf(name, password)));
    else {
      madeUp = await madeUpPassword(dataDirectory);
      users.push(withHash(user, await hashOf(name, madeUp.text, RANDOM_PASSWORD_COST)));
    }
  }
  const grants = firstDriveOf(drives);
  for (const [name, passwordHash] of listed) users.push({ name, grants, passwordHash });
  return { users: configured && users, madeUpPassword: madeUp };
}

function withHash(user: Omit<User, 'passwordHash'>, passwordHash: string): User {
  return { ...user, passwordHash };
}

function makeDataDirectory(directory: string): void {
  try {
    makeFolder(directory);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException; // the file system's own errors
    throw new ConfigError(
      `cannot make the data directory ${directory} (${code}); choose another with --data-dir`,
    );
  }
}
