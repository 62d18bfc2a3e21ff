import { createInterface } from 'node:readline/promises';
import { hashPassword } from '../http/passwords.ts';

/** `davgate hash-password`: reads a password from standard input and prints its hash for a configuration file. */
export async function hashPasswordCommand(): Promise<void> {
  const lines = createInterface({ input: process.stdin });
  if (process.stdin.isTTY) process.stderr.write('Password: ');
  for await (const line of lines) {
    console.log(await hashPassword(line));
    return;
  }
}
