import { readFileSync } from 'node:fs';
import { errorCodeOf } from '../util/error-code.ts';
import { didYouMean } from '../util/similar.ts';
import { bandwidthSettings } from './bandwidth.ts';
import { collect, collectAll } from './collect.ts';
import { type ConfigNode, parseConfigText } from './config-text.ts';
import { type Fields, fieldsOf, originOf, refuse, textOf } from './fields.ts';
import { withSecretFiles } from './secret-sources.ts';
import {
  ConfigError,
  DRIVE_SETTINGS,
  notEmpty,
  OPTIONS,
  type Setting,
  type SettingName,
  type Settings,
} from './settings.ts';
import { type UserRow, userRowsOf } from './user-rows.ts';

/** The contents of a configuration file. */
export interface ConfigFile {
  /** The file's path, for error messages. */
  readonly origin: string;
  readonly settings: Settings;
  readonly drives: readonly { readonly name: string; readonly settings: Settings }[] | undefined;
  readonly users: readonly UserRow[] | undefined;
}

/** Keys beside the settings at the top of a file. */
export const TOP_KEYS = {
  /** Tells an editor the schema of the file. */
  schema: '$schema',
  drives: 'drives',
  users: 'users',
  bandwidth: 'bandwidth',
} as const;

/** Form of a drive's name. */
export const DRIVE_NAME = /^[\w-]{1,64}$/;

const FILE_SETTINGS: ReadonlySet<SettingName> = new Set(
  OPTIONS.map(({ name }) => name).filter((name) => name !== 'config'),
);

/**
 * Reads a configuration file: YAML, or JSON with comments, with the settings by name, and `drives` and `users`. Throws
 * `ConfigError` for all problems of the file together, each with line and column, the key and what to write.
 */
export async function readConfigFile(path: string): Promise<ConfigFile> {
  const { root, faults } = await parseConfigText(textIn(path));
  // The values beside a fault may not be the ones that were meant.
  collectAll(
    faults.map(
      ({ place, reason }) =>
        () =>
          refuse(path, place, reason),
    ),
  );
  if (!root) throw new ConfigError(`cannot read ${path}: the file has no settings; write at least {}`);
  const { drives, users, bandwidth, settings } = partsOf(root, path);
  return collect<ConfigFile>({
    origin: () => path,
    settings: () => withBandwidth(settingsOf(settings, path), bandwidth, path),
    drives: () => drives && drivesOf(drives, path),
    users: () => users && userRowsOf(users, path),
  });
}

function textIn(path: string): string {
  let bytes: Buffer;
  try {
    bytes = readFileSync(path);
  } catch (error) {
    const reason = errorCodeOf(error) || error;
    throw new ConfigError(`--config: cannot read ${path} (${reason}); check its name and permissions`);
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new ConfigError(`cannot read ${path}: the file is not UTF-8; save it with the encoding UTF-8`);
  }
}

function partsOf(root: ConfigNode, path: string) {
  const settings = new Map(fieldsOf(root, path, 'the file'));
  const taken = Object.values(TOP_KEYS).map((key) => {
    const field = settings.get(key);
    settings.delete(key);
    return [key, field] as const;
  });
  const { drives, users, bandwidth } = Object.fromEntries(taken);
  return { drives: drives?.node, users: users?.node, bandwidth, settings };
}

function withBandwidth(settings: Settings, field: ReturnType<Fields['get']>, path: string): Settings {
  const own = bandwidthSettings(field, path);
  const twice = own.map(([name]) => settings.get(name)).find((setting) => setting);
  if (twice) throw new ConfigError(`${twice.origin}: "bandwidth" has the same limit; remove one`);
  return own.length === 0 ? settings : new Map([...settings, ...own]);
}

function settingsOf(fields: Fields, path: string, allowed = FILE_SETTINGS): Settings {
  const settings = collectAll(
    [...fields].map(([key, { place, node }]) => () => {
      const option = OPTIONS.find(({ name }) => name === key && allowed.has(name));
      if (!option) refuse(path, place, unknownKey(key, allowed));
      const isSwitch = !('value' in option);
      const setting = { text: textOf(node, key, path, isSwitch), origin: originOf(key, path, node.place) };
      return [option.name, notEmpty(option, setting)] satisfies [SettingName, Setting];
    }),
  );
  return withSecretFiles(new Map(settings));
}

function unknownKey(key: string, allowed: ReadonlySet<string>): string {
  if (allowed !== FILE_SETTINGS && FILE_SETTINGS.has(key as SettingName))
    return `"${key}" is not a setting of a drive; write it at the top of the file`;
  const also = allowed === FILE_SETTINGS ? Object.values(TOP_KEYS) : [];
  return `unknown key "${key}"${didYouMean(key, [...allowed, ...also])}`;
}

function drivesOf(node: ConfigNode, path: string): NonNullable<ConfigFile['drives']> {
  const drives = [...fieldsOf(node, path, '"drives"')];
  if (drives.length === 0) refuse(path, node.place, '"drives" is empty; name at least one, or leave it out');
  return collectAll(
    drives.map(([name, { place, node: drive }]) => () => {
      if (!DRIVE_NAME.test(name))
        refuse(path, place, `drive "${name}": a drive's name is 1 to 64 letters, digits, "_" and "-"`);
      const fields = fieldsOf(drive, path, `drive "${name}"`);
      return { name, settings: settingsOf(fields, path, DRIVE_SETTINGS) };
    }),
  );
}
