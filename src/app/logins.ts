import type { Config } from '../config/configuration.ts';
import { type MadeUpPassword, madeUpPassword } from '../config/password-file.ts';
import { ConfigError } from '../config/settings.ts';
import type { User } from '../http/credentials.ts';
import { hashPassword, RANDOM_PASSWORD_COST } from '../http/passwords.ts';
import { makeFolder } from '../util/make-folder.ts';

/** The users that may log in. */
export interface Logins {
  /** `undefined`: no login is needed. */
  readonly users: readonly User[] | undefined;
  /** The password of the only user, if the configuration sets none. */
  readonly madeUpPassword: MadeUpPassword | undefined;
}

/** Hashes the configured passwords, and makes up a password for a user without one. Throws `ConfigError`. */
export async function loginsOf({ users: configured, dataDirectory }: Config): Promise<Logins> {
  makeDataDirectory(dataDirectory);
  let madeUp: MadeUpPassword | undefined;
  const users: User[] = [];
  for (const { name, drive, password, passwordHash } of configured ?? []) {
    if (passwordHash) users.push({ name, drive, passwordHash });
    else if (password) users.push({ name, drive, passwordHash: await hashPassword(password) });
    else {
      madeUp = await madeUpPassword(dataDirectory);
      users.push({ name, drive, passwordHash: await hashPassword(madeUp.text, RANDOM_PASSWORD_COST) });
    }
  }
  return { users: configured && users, madeUpPassword: madeUp };
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
