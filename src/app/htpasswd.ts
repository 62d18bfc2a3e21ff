import { readFile } from 'node:fs/promises';
import { ConfigError, refuseUnsayable } from '../config/settings.ts';
import { checkPasswordHash, PasswordHashError } from '../http/passwords.ts';

/** Reads a file of Apache's `htpasswd`: the hash of each user. Throws `ConfigError`, without a hash. */
export async function readHtpasswd(file: string): Promise<ReadonlyMap<string, string>> {
  const users = new Map<string, string>();
  const lines = (await textOf(file)).split(/\r?\n/);
  for (const [index, line] of lines.entries()) {
    if (line.trim() === '' || line.startsWith('#')) continue;
    const origin = `cannot read ${file}: line ${index + 1}`;
    const colon = line.indexOf(':');
    if (colon < 1) throw new ConfigError(`${origin}: not NAME:HASH; make the line with htpasswd -B`);
    const name = line.slice(0, colon).normalize('NFC');
    refuseUnsayable({ text: name, origin });
    if (users.has(name)) throw new ConfigError(`${origin}: the user ${name} is listed twice; remove one`);
    // Some programs write more fields after the hash.
    const [hash = ''] = line.slice(colon + 1).split(':');
    users.set(name, checked(hash.trim(), `${origin}: user ${name}`));
  }
  return users;
}

async function textOf(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException; // the file system's own errors
    throw new ConfigError(`--htpasswd: cannot read ${file} (${code}); check its name and permissions`);
  }
}

function checked(hash: string, origin: string): string {
  try {
    checkPasswordHash(hash);
    return hash;
  } catch (error) {
    if (error instanceof PasswordHashError) throw new ConfigError(`${origin}: ${error.message}`);
    throw error;
  }
}
