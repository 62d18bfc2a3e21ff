import { createServer } from 'node:http';
import { parseAddress } from '../../config/address.ts';
import { ConfigError, refuseUnsayable } from '../../config/settings.ts';
import { ListenError, listen } from '../../http/node-server.ts';
import { isLoopback } from '../../util/networks.ts';
import type { Dialog } from '../dialog.ts';
import { LoginError } from '../login/login-error.ts';

/** What a person answered about the listener. */
export interface Answers {
  readonly listen: string;
  readonly login: {
    readonly user: string;
    /** `undefined`: davgate makes one up. */
    readonly password: string | undefined;
  };
}

/** Returns the typed line without spaces around it. Throws `LoginError` when the input has ended. */
export async function answerTo(dialog: Dialog, prompt: string): Promise<string> {
  return notEnded(await dialog.ask(prompt)).trim();
}

function notEnded(line: string | undefined): string {
  if (line === undefined) throw new LoginError('setup was not finished, and no configuration was written');
  return line;
}

/** Asks for yes or no; Enter alone is `otherwise`. */
export async function chooses(dialog: Dialog, question: string, otherwise: 'yes' | 'no'): Promise<boolean> {
  for (;;) {
    const answer = (await answerTo(dialog, `${question} (yes/no) [${otherwise}]: `)).toLowerCase();
    if ('yes'.startsWith(answer || otherwise)) return true;
    if ('no'.startsWith(answer || otherwise)) return false;
  }
}

const ADDRESS = '127.0.0.1:8765';

/** Asks for an address until davgate can listen there. */
export async function askForAddress(dialog: Dialog): Promise<string> {
  console.log(`Where should davgate listen? 127.0.0.1 is for this machine only.`);
  for (;;) {
    const text = (await answerTo(dialog, `HOST:PORT [${ADDRESS}]: `)) || ADDRESS;
    const problem = await problemOf(text);
    if (problem === undefined) return text;
    console.log(problem);
  }
}

async function problemOf(text: string): Promise<string | undefined> {
  try {
    const { host, port } = parseAddress({ text, origin: 'address' });
    const server = createServer();
    await listen(server, host, port);
    await new Promise((resolve) => server.close(resolve));
    if (!isLoopback(host))
      console.log(
        'Other machines can reach this address, and passwords and files cross the network unencrypted without tls-cert and tls-key (docs/tls.md).',
      );
    return undefined;
  } catch (error) {
    if (error instanceof ConfigError || error instanceof ListenError) return error.message;
    throw error;
  }
}

/** Asks for the user and the password of the drive. */
export async function askForLogin(dialog: Dialog): Promise<Answers['login']> {
  console.log('\nWho may use the drive?');
  const user = await userName(dialog);
  return { user, password: await newPassword(dialog) };
}

async function userName(dialog: Dialog): Promise<string> {
  for (;;) {
    const name = (await answerTo(dialog, 'User [davgate]: ')) || 'davgate';
    if (!name.includes(':')) return name;
    console.log('The name of a user has no colon.');
  }
}

async function newPassword(dialog: Dialog): Promise<string | undefined> {
  for (;;) {
    const password = notEnded(await dialog.askHidden('Password (Enter alone: davgate makes one): '));
    if (password === '') return undefined;
    const problem = await passwordProblem(dialog, password);
    if (problem === undefined) return password;
    console.log(problem);
  }
}

async function passwordProblem(dialog: Dialog, password: string): Promise<string | undefined> {
  try {
    refuseUnsayable({ text: password, origin: 'password' });
  } catch (error) {
    if (error instanceof ConfigError) return error.message;
    throw error;
  }
  const again = notEnded(await dialog.askHidden('The same again: '));
  return again === password ? undefined : 'The two differ. Type it again.';
}
