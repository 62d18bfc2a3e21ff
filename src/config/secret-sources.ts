import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ConfigError, notEmpty, type Setting, type SettingName, type Settings } from './settings.ts';

/** Settings that name a secret's file, and the setting that the file contains. */
const SECRET_FILES = [
  ['password-file', 'password'],
  ['token-file', 'token'],
  ['oidc-client-secret-file', 'oidc-client-secret'],
] as const satisfies readonly (readonly [SettingName, SettingName])[];

/** systemd's credentials (systemd.exec(5), LoadCredential=) by name. */
const CREDENTIALS = {
  'davgate-password': 'password',
  'davgate-token': 'token',
  'davgate-app-secret': 'app-secret',
  'davgate-refresh-token': 'refresh-token',
  'davgate-oidc-client-secret': 'oidc-client-secret',
} as const satisfies Readonly<Record<string, SettingName>>;

/** Replaces settings that name a secret's file by the secret. Throws `ConfigError`, without the secret. */
export function withSecretFiles(settings: Settings): Settings {
  const read = new Map(settings);
  for (const [fileName, name] of SECRET_FILES) {
    const file = settings.get(fileName);
    if (!file) continue;
    const beside = settings.get(name);
    if (beside) throw new ConfigError(`${file.origin}: ${beside.origin} is given too; leave one out`);
    read.delete(fileName);
    read.set(name, secretIn(file.text, file.origin));
  }
  return read;
}

/** Reads the secrets that systemd puts into `$CREDENTIALS_DIRECTORY`. Throws `ConfigError`. */
export function settingsOfCredentials(environment: NodeJS.ProcessEnv): Settings {
  const settings = new Map<SettingName, Setting>();
  const directory = environment['CREDENTIALS_DIRECTORY'];
  if (directory === undefined || directory === '') return settings;
  for (const [credential, name] of Object.entries(CREDENTIALS)) {
    const text = textOf(join(directory, credential), `the credential ${credential}`);
    if (text !== undefined) settings.set(name, checked(text, `the credential ${credential}`));
  }
  return settings;
}

function secretIn(file: string, origin: string): Setting {
  const text = textOf(file, origin);
  if (text === undefined) throw unreadable(file, origin, 'ENOENT');
  return checked(text, `${origin} (${file})`);
}

/** Removes the line break at the end, which editors add. Throws `ConfigError` for an empty secret. */
function checked(text: string, origin: string): Setting {
  return notEmpty({ name: 'password', value: 'SECRET' }, { text: text.replace(/\r?\n$/, ''), origin });
}

/** Returns the file's text; `undefined` if there is no such file. */
function textOf(file: string, origin: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException; // the file system's own errors
    if (code === 'ENOENT') return undefined;
    throw unreadable(file, origin, code);
  }
}

function unreadable(file: string, origin: string, code: string | undefined): ConfigError {
  return new ConfigError(`${origin}: cannot read ${file} (${code}); check its name and permissions`);
}
