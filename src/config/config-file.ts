import { readFileSync } from 'node:fs';
import { withSecretFiles } from './secret-sources.ts';
import {
  ConfigError,
  DRIVE_SETTINGS,
  notEmpty,
  OPTIONS,
  refuseUnsayable,
  type Setting,
  type SettingName,
  type Settings,
} from './settings.ts';

/** A user and their drive. */
export interface UserConfig {
  readonly name: string;
  /** Exactly one of `password` and `passwordHash`; neither for the only user whose password davgate makes up. */
  readonly password?: string;
  readonly passwordHash?: string;
  readonly drive: string;
}

/** The contents of a configuration file. */
export interface ConfigFile {
  /** The file's path, for error messages. */
  readonly origin: string;
  readonly settings: Settings;
  readonly drives: readonly { readonly name: string; readonly settings: Settings }[] | undefined;
  readonly users: readonly UserConfig[] | undefined;
}

const USER_KEYS = new Set(['name', 'password', 'password-hash', 'drive']);

type JsonObject = Readonly<Record<string, unknown>>;

/**
 * Reads a configuration file: JSON with the settings by name, and `drives` and `users`. Throws `ConfigError`, which names
 * the file, the key and what to write.
 */
export function readConfigFile(path: string): ConfigFile {
  const top = objectOf(parseFile(path), path);
  const { drives, users, ...settings } = top;
  return {
    origin: path,
    settings: settingsOf(settings, path, () => true),
    drives: drives === undefined ? undefined : drivesOf(drives, path),
    users: users === undefined ? undefined : usersOf(users, path),
  };
}

function parseFile(path: string): unknown {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    const reason = error instanceof Error && 'code' in error ? error.code : error;
    throw new ConfigError(`--config: cannot read ${path} (${reason}); check its name and permissions`);
  }
  try {
    return JSON.parse(text);
  } catch (error) {
    // Node's message quotes the text near the error, which may be a token.
    const place = error instanceof Error ? / at position \d+.*/.exec(error.message)?.[0] : undefined;
    throw new ConfigError(`--config: ${path} is not valid JSON${place ?? ''}; correct it there`);
  }
}

function objectOf(value: unknown, where: string): JsonObject {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new ConfigError(`${where}: must be an object in braces`);
  return value as JsonObject; // checked just above
}

function settingsOf(values: JsonObject, where: string, allowed: (name: SettingName) => boolean): Settings {
  const settings = new Map<SettingName, Setting>();
  for (const [key, value] of Object.entries(values)) {
    const option = OPTIONS.find((candidate) => candidate.name === key && candidate.name !== 'config');
    if (!option || !allowed(option.name)) throw new ConfigError(`"${key}" in ${where}: no such setting here`);
    const isSwitch = !('value' in option);
    if (typeof value !== 'string' && !(isSwitch && typeof value === 'boolean'))
      throw new ConfigError(
        `"${key}" in ${where}: must be ${isSwitch ? 'true or false' : 'a text in quotes'}`,
      );
    settings.set(option.name, notEmpty(option, { text: String(value), origin: `"${key}" in ${where}` }));
  }
  return withSecretFiles(settings);
}

function drivesOf(value: unknown, path: string): { name: string; settings: Settings }[] {
  const drives = Object.entries(objectOf(value, `"drives" in ${path}`)).map(([name, settings]) => {
    const where = `drive "${name}" in ${path}`;
    if (!/^[\w-]{1,64}$/.test(name))
      throw new ConfigError(`${where}: a drive's name is 1 to 64 letters, digits, "_" and "-"`);
    return { name, settings: settingsOf(objectOf(settings, where), where, (key) => DRIVE_SETTINGS.has(key)) };
  });
  if (drives.length === 0) throw new ConfigError(`"drives" in ${path}: name at least one, or leave it out`);
  return drives;
}

function usersOf(value: unknown, path: string): UserConfig[] {
  if (!Array.isArray(value) || value.length === 0)
    throw new ConfigError(`"users" in ${path}: must be a list of at least one user`);
  const users = value.map((row, index) => userOf(objectOf(row, `user ${index + 1} in ${path}`), index, path));
  const names = users.map((user) => user.name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) throw new ConfigError(`"users" in ${path}: ${twice} is listed twice`);
  return users;
}

function userOf(row: JsonObject, index: number, path: string): UserConfig {
  const where = `user ${index + 1} in ${path}`;
  const unknown = Object.keys(row).find((key) => !USER_KEYS.has(key));
  if (unknown) throw new ConfigError(`"${unknown}" of ${where}: the keys are ${[...USER_KEYS].join(', ')}`);
  const { name, password, drive } = row;
  const passwordHash = row['password-hash'];
  if (typeof name !== 'string' || name === '' || name.includes(':'))
    throw new ConfigError(`"name" of ${where}: must be a name without a colon`);
  refuseUnsayable({ text: name, origin: `"name" of ${where}` });
  if (typeof drive !== 'string') throw new ConfigError(`"drive" of ${where}: must be the name of a drive`);
  if (typeof password === 'string' && password !== '' && passwordHash === undefined) {
    refuseUnsayable({ text: password, origin: `"password" of ${where}` });
    return { name, drive, password };
  }
  if (typeof passwordHash === 'string' && password === undefined) return { name, drive, passwordHash };
  throw new ConfigError(
    `${where}: write either "password" or "password-hash" (davgate hash-password makes one)`,
  );
}
