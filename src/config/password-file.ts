import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { writeSecret } from '../util/secret-file.ts';
import { ConfigError } from './settings.ts';

/** 15 random bytes are 20 letters that a person can still type. */
const PASSWORD_BYTES = 15;

/** A password that nobody chose. */
export interface MadeUpPassword {
  readonly text: string;
  /** Holds it, in clear. */
  readonly file: string;
  /** It was made just now, and nobody has seen it. */
  readonly isNew: boolean;
}

/**
 * The password that davgate makes up when it is given none: the same at every start with this data directory,
 * so that a mount survives a restart. Kept in clear, as it has to be shown, in a file for its owner alone. Throws
 * `ConfigError` where it cannot be kept.
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
      `${file}: the password that davgate makes cannot be kept there (${code}); check owner and rights, or give --password-file and --data-dir`,
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
  // A program takes a word that begins with a dash for an option: `rclone obscure` does.
  const password = random(PASSWORD_BYTES).toString('base64url').replace(/^-/, 'x');
  await writeSecret(file, `${password}\n`);
  return password;
}
