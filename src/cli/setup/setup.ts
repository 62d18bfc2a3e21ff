import { existsSync } from 'node:fs';
import { rename } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { ApiError } from '../../api/errors.ts';
import { type Config, dataDirectoryOf, resolveConfig } from '../../config/configuration.ts';
import { readLogin } from '../../config/login-file.ts';
import { ConfigError, type Settings } from '../../config/settings.ts';
import { DEFAULT_DRIVE } from '../../config/users.ts';
import { bracketed } from '../../http/node-server.ts';
import { hashPassword } from '../../http/passwords.ts';
import { systemClock } from '../../util/clock.ts';
import { makeFolder } from '../../util/make-folder.ts';
import { PACKAGE_ROOT } from '../../util/package.ts';
import { writeSecret } from '../../util/secret-file.ts';
import { type Dialog, withDialog } from '../dialog.ts';
import { examine } from '../doctor/doctor.ts';
import { defaultConfigFile, loadSettings } from '../load-settings.ts';
import { LoginError } from '../login/login-error.ts';
import { type AccountChoice, connectAccount } from './account-questions.ts';
import { type Answers, answerTo, askForAddress, askForLogin, chooses } from './questions.ts';

/** `davgate setup`: asks, writes the configuration file and runs the doctor. Returns the exit code. */
export async function setupCommand(
  flags: Settings,
  environment: NodeJS.ProcessEnv,
  { opensBrowser }: { readonly opensBrowser: boolean },
): Promise<number> {
  if (!process.stdin.isTTY)
    throw new ConfigError(
      'setup: needs a terminal, and standard input is not one; write a file for --config instead (docs/reference/config.md)',
    );
  try {
    return await withDialog((dialog) => converse(dialog, { flags, opensBrowser }, environment));
  } catch (error) {
    if (!(error instanceof ApiError || error instanceof LoginError)) throw error;
    process.stderr.write(`davgate: ${error.message}\n`);
    return 1;
  }
}

interface Conversation {
  /** `config`, `data-dir` and `api-url`. */
  readonly flags: Settings;
  readonly opensBrowser: boolean;
}

async function converse(
  dialog: Dialog,
  { flags, opensBrowser }: Conversation,
  environment: NodeJS.ProcessEnv,
): Promise<number> {
  const file = resolve(flags.get('config')?.text ?? defaultConfigFile(environment));
  if (
    existsSync(file) &&
    !(await chooses(dialog, `${file} exists. Replace it, and keep it as ${file}.old?`, 'no'))
  )
    return 1;
  const dataDirectory = dataDirectoryOf(flags, environment);
  await chooseStorage(dialog, { dataDirectory, apiUrl: flags.get('api-url')?.text, opensBrowser });
  const listen = await askForAddress(dialog);
  const login = await askForLogin(dialog);
  const named = flags.has('data-dir') ? dataDirectory : undefined;
  await writeConfiguration(file, await contentOf({ listen, login }, named));
  console.log(`\nWritten: ${file}\n`);
  return finish(file, flags.has('config') ? ` --config ${file}` : '', environment);
}

async function chooseStorage(
  dialog: Dialog,
  { dataDirectory, apiUrl, opensBrowser }: AccountChoice,
): Promise<void> {
  if (readLogin(dataDirectory)) {
    console.log(
      'An account is connected: the drive shows its files. (davgate login --remove disconnects it.)\n',
    );
    return;
  }
  console.log(`Where should the files of the drive be stored?
  1  on this machine, in ${dataDirectory}; no account is needed
  2  in an account of the storage service that you have`);
  for (;;) {
    const answer = (await answerTo(dialog, 'Choose 1 or 2 [1]: ')) || '1';
    if (answer === '1') return console.log('');
    if (answer === '2') return connectAccount(dialog, { dataDirectory, apiUrl, opensBrowser });
  }
}

/** The file keeps only a hash of the password, as the running davgate does. */
async function contentOf({ listen, login }: Answers, dataDirectory: string | undefined): Promise<string> {
  const { user, password } = login;
  const who =
    password === undefined
      ? { user }
      : { users: [{ name: user, 'password-hash': await hashPassword(password), drive: DEFAULT_DRIVE }] };
  const settings = { listen, ...(dataDirectory !== undefined && { 'data-dir': dataDirectory }), ...who };
  return `${JSON.stringify(settings, undefined, 2)}\n`;
}

async function writeConfiguration(file: string, text: string): Promise<void> {
  try {
    makeFolder(dirname(file));
    if (existsSync(file)) await rename(file, `${file}.old`);
    await writeSecret(file, text);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException; // the file system's own errors
    throw new ConfigError(`setup: cannot write ${file} (${code}); choose another with --config`);
  }
}

/** Returns the address of the drive in a browser. */
function addressFor({ listen, publicUrl, basePath }: Config): string {
  if (publicUrl !== undefined) return `${publicUrl}/`;
  if ('passedBy' in listen) return '(at the ListenStream= of the socket unit)';
  if (!('host' in listen)) return `(through the reverse proxy in front of unix:${listen.socketPath})`;
  return `http://${bracketed(listen.host)}:${listen.port}${basePath}/`;
}

/** Tests the configuration, and says how to start davgate and mount the drive. Returns the exit code. */
async function finish(file: string, named: string, environment: NodeJS.ProcessEnv): Promise<number> {
  const flags = new Map([['config', { text: file, origin: '--config' }] as const]);
  const { settings, file: read } = await loadSettings(flags, environment);
  const config = resolveConfig(settings, read, environment, PACKAGE_ROOT);
  const signal = new AbortController().signal;
  const print = (line: string) => console.log(line);
  const isGood = await examine(config, { print, clock: systemClock, nodeVersion: process.version, signal });
  console.log(`
Start it     davgate${named}
  at boot    docs/install.md, "With systemd"
Mount it     davgate mount${named}      (in another terminal)
  by hand    the start prints the commands for each system
In a browser ${addressFor(config)}`);
  if (isGood) return 0;
  console.log(`\nA check failed: fix it, then run davgate doctor${named}.`);
  return 1;
}
