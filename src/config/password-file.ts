import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { writeSecret } from '../util/secret-file.ts';
import { ConfigError } from './settings.ts';

/** Length of a made-up password: 15 random bytes are 20 characters, which a person can still type. */
const PASSWORD_BYTES = 15;

/** A password that davgate made up. */
export interface MadeUpPassword {
  readonly text: string;
  /** The file that contains it in clear text. */
  readonly file: string;
  /** Whether it was made just now, so that nobody has seen it. */
  readonly isNew: boolean;
}

/**
 * Returns the password that davgate makes up if none is configured. It is the same at every start with this data
 * directory, so that a mount survives a restart. It is stored in clear text, because it has to be shown, in a file that
 * only its owner can read. Throws `ConfigError` if it cannot be stored.
 */
export async function madeUpPassword(
  dataDirectory: string,
  random: (sizeBytes: number) => Buffer = randomBytes,
): Promise<MadeUpPassword> {
  const file = join(dataDirectory, 'password');
  try {
    const kept = await keptIn(file);
    return { text: kept ?? (await keptNew(file, random)), file, isNew: kept === undefined };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException; // the file system's own errors
    throw new ConfigError(
      `cannot store the made-up password in ${file} (${code}); check owner and permissions, or give --password-file and --data-dir`,
    );
  }
}

async function keptIn(file: string): Promise<string | undefined> {
  try {
    return (await readFile(file, 'utf8')).trim() || undefined;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

async function keptNew(file: string, random: (sizeBytes: number) => Buffer): Promise<string> {
  // No dash at the start, because programs such as `rclone obscure` would take the password for an option.
  const password = random(PASSWORD_BYTES).toString('base64url').replace(/^-/, 'x');
  await writeSecret(file, `${password}\n`);
  return password;
}
