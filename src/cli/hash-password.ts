import { ConfigError, refuseUnsayable } from '../config/settings.ts';
import { hashPassword } from '../http/passwords.ts';
import { readSecret } from './typed-secret.ts';

/** `davgate hash-password`: reads a password from standard input and prints its hash for a configuration file. */
export async function hashPasswordCommand(args: readonly string[]): Promise<void> {
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
