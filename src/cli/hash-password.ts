import { ConfigError, refuseUnsayable } from '../config/settings.ts';
import { hashPassword } from '../http/passwords.ts';
import { readSecret } from './typed-secret.ts';

const HELP = `Hashes a password for the "password-hash" of a user in a configuration file.

Usage: davgate hash-password

Reads the password as one line from standard input, so that it appears in no process list and no shell history. A terminal
hides it and asks for it twice.
`;

/** `davgate hash-password`: reads a password from standard input and prints its hash for a configuration file. */
export async function hashPasswordCommand(args: readonly string[]): Promise<void> {
  if (args.includes('--help')) return console.log(HELP);
  if (args.length > 0)
    throw new ConfigError(
      'hash-password: takes no arguments; it reads the password from standard input, because command lines are public',
    );
  const password = (await readSecret()) ?? '';
  if (password === '')
    throw new ConfigError('hash-password: standard input contains no password; type or pipe one');
  refuseUnsayable({ text: password, origin: 'hash-password' });
  console.log(await hashPassword(password));
}
