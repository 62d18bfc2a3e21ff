import { randomBytes } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** 15 random bytes are 20 letters that a person can still type. */
const PASSWORD_BYTES = 15;

/**
 * The password that davgate makes up when it is given none: the same at every start with this data directory,
 * so that a mount survives a restart. Kept in clear, as it has to be shown, in a file for its owner alone.
 */
export async function madeUpPassword(dataDirectory: string): Promise<string> {
  const file = join(dataDirectory, 'password');
  const kept = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return '';
    throw error;
  });
  if (kept.trim() !== '') return kept.trim();
  const password = randomBytes(PASSWORD_BYTES).toString('base64url');
  await writeFile(file, `${password}\n`, { mode: 0o600 });
  return password;
}
