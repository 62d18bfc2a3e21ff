import { createInterface } from 'node:readline';
import { ConfigError } from '../config/settings.ts';
import { withDialog } from './dialog.ts';

/**
 * Returns the first line of standard input; `undefined` without one. A terminal hides the line and asks for it twice.
 * Throws `ConfigError` if the two differ.
 */
export async function readSecret(): Promise<string | undefined> {
  if (!process.stdin.isTTY) return firstLine();
  return withDialog(async (dialog) => {
    const secret = await dialog.askHidden('Password: ');
    if (secret === undefined || secret === '') return secret;
    if ((await dialog.askHidden('The same again: ')) === secret) return secret;
    throw new ConfigError('the two passwords differ; try again');
  });
}

/** Returns the password on standard input, for `--password-stdin`. Throws `ConfigError` without one. */
export async function readPassword(): Promise<string> {
  const password = await readSecret();
  if (password === undefined)
    throw new ConfigError('--password-stdin: standard input contains no password; type or pipe one');
  return password;
}

async function firstLine(): Promise<string | undefined> {
  for await (const line of createInterface({ input: process.stdin })) return line;
  return undefined;
}
