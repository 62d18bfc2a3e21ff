import { readFileSync } from 'node:fs';
import { didYouMean } from '../util/similar.ts';
import { collect, collectAll } from './collect.ts';
import { type ConfigNode, type Place, parseConfigText } from './config-text.ts';
import { rootOf } from './drive-config.ts';
import type { Grant } from './grant.ts';
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
import { GRANT_KEYS, USER_KEYS } from './user-keys.ts';

/** A user and their drives. */
export interface UserConfig {
  readonly name: string;
  /**
   * At most one of `password`, `passwordHash` and `isListedElsewhere`; none for the only user whose password davgate makes
   * up.
   */
  readonly password?: string;
  readonly passwordHash?: string;
  /** Whether the password is in the htpasswd file, if it is anywhere. */
  readonly isListedElsewhere?: true;
  readonly grants: readonly Grant[];
}

/** A user, and where it stands, for error messages. */
interface UserRow extends UserConfig {
  readonly origin: string;
}

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
  const { drives, users, settings } = partsOf(root, path);
  return collect<ConfigFile>({
    origin: () => path,
    settings: () => settingsOf(settings, path),
    drives: () => drives && drivesOf(drives, path),
    users: () => users && usersOf(users, path),
  });
}

function textIn(path: string): string {
  let bytes: Buffer;
  try {
    bytes = readFileSync(path);
  } catch (error) {
    const reason = error instanceof Error && 'code' in error ? error.code : error;
    throw new ConfigError(`--config: cannot read ${path} (${reason}); check its name and permissions`);
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new ConfigError(`cannot read ${path}: the file is not UTF-8; save it with the encoding UTF-8`);
  }
}

function refuse(path: string, place: Place, reason: string): never {
  throw new ConfigError(`cannot read ${path}: ${place}: ${reason}`);
}

/** The members of an object by key, with the place of the key. */
type Fields = ReadonlyMap<string, { readonly place: Place; readonly node: ConfigNode }>;

/** Throws `ConfigError` for another kind of value and for a duplicate key. */
function fieldsOf(node: ConfigNode, path: string, what: string): Fields {
  // `local:` with nothing after it is an object without keys.
  if (node.kind === 'scalar' && node.value === null) return new Map();
  if (node.kind !== 'object') refuse(path, node.place, `${what} must have keys and values, or braces: {}`);
  const fields = new Map<string, { readonly place: Place; readonly node: ConfigNode }>();
  collectAll(
    node.members.map((member) => () => {
      const first = fields.get(member.key);
      if (first)
        refuse(path, member.place, `duplicate key "${member.key}" (first at ${first.place}); remove one`);
      fields.set(member.key, member);
    }),
  );
  return fields;
}

function partsOf(root: ConfigNode, path: string) {
  const settings = new Map(fieldsOf(root, path, 'the file'));
  const taken = Object.values(TOP_KEYS).map((key) => {
    const { node } = settings.get(key) ?? {};
    settings.delete(key);
    return [key, node] as const;
  });
  const { drives, users } = Object.fromEntries(taken);
  return { drives, users, settings };
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

function originOf(key: string, path: string, place: Place): string {
  return `"${key}" in ${path}, ${place}`;
}

function unknownKey(key: string, allowed: ReadonlySet<string>): string {
  if (allowed !== FILE_SETTINGS && FILE_SETTINGS.has(key as SettingName))
    return `"${key}" is not a setting of a drive; write it at the top of the file`;
  const also = allowed === FILE_SETTINGS ? Object.values(TOP_KEYS) : [];
  return `unknown key "${key}"${didYouMean(key, [...allowed, ...also])}`;
}

/** Returns a value that is text, or for a switch `true` or `false`. Throws `ConfigError`, without the value. */
function textOf(node: ConfigNode, key: string, path: string, isSwitch = false): string {
  const value = node.kind === 'scalar' ? node.value : undefined;
  if (typeof value === 'string' || (isSwitch && typeof value === 'boolean')) return String(value);
  if (value === null) refuse(path, node.place, `"${key}" is empty; write a value or leave it out`);
  return refuse(path, node.place, `"${key}" must be ${isSwitch ? 'true or false' : 'a text in quotes'}`);
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

/** What to do with a user without a password, or with two. */
export const WRITE_PASSWORD = 'write either "password" or "password-hash" (davgate hash-password makes one)';

function usersOf(node: ConfigNode, path: string): readonly UserRow[] {
  if (node.kind !== 'list' || node.items.length === 0)
    refuse(path, node.place, '"users" must be a list of at least one user');
  const users = collectAll(node.items.map((item) => () => userOf(item, path)));
  const names = users.map((user) => user.name);
  const twice = names.findIndex((name, index) => names.indexOf(name) !== index);
  const again = node.items[twice];
  if (again) refuse(path, again.place, `the user ${names[twice]} is listed twice`);
  return users;
}

function userOf(node: ConfigNode, path: string): UserRow {
  const fields = fieldsOf(node, path, 'a user');
  const { texts, grants } = collect({
    keys: () =>
      refuseUnknown(
        fields,
        USER_KEYS.map(({ name }) => name),
        path,
        'a user',
      ),
    texts: () => textsOf(fields, ['name', 'password', 'password-hash'], path),
    grants: () => grantsOf(fields, node, path),
  });
  const [name, password, passwordHash] = texts;
  if (name === undefined) refuse(path, node.place, 'this user has no "name"');
  const placeOf = (key: string) => fields.get(key)?.node.place ?? node.place;
  if (name === '' || name.includes(':'))
    refuse(path, placeOf('name'), '"name" must be a name without a colon');
  refuseUnsayable({ text: name, origin: originOf('name', path, placeOf('name')) });
  if (password === '' || (password !== undefined && passwordHash !== undefined))
    refuse(path, node.place, `user ${name}: ${WRITE_PASSWORD}`);
  if (password !== undefined)
    refuseUnsayable({ text: password, origin: originOf('password', path, placeOf('password')) });
  const origin = `cannot read ${path}: ${node.place}: user ${name}`;
  return {
    name,
    grants,
    origin,
    ...(password !== undefined && { password }),
    ...(passwordHash !== undefined && { passwordHash }),
  };
}

function grantsOf(fields: Fields, user: ConfigNode, path: string): readonly Grant[] {
  const list = fields.get('drives');
  if (!list) return [grantOf(fields, user, path)];
  const beside = (['drive', 'root'] as const).find((key) => fields.has(key));
  if (beside) refuse(path, list.place, `"drives" and "${beside}" exclude each other; write it in the list`);
  const { node } = list;
  if (node.kind !== 'list' || node.items.length === 0)
    refuse(path, node.place, '"drives" of a user must be a list of at least one drive');
  const isReadOnly = switchIn(fields, 'read-only', path);
  const grants = collectAll(
    node.items.map((item) => () => {
      const grant = grantIn(item, path);
      return { ...grant, folder: grant.drive, ...(isReadOnly && { isReadOnly }) };
    }),
  );
  const names = grants.map(({ drive }) => drive.toLowerCase());
  const again = node.items[names.findIndex((name, index) => names.indexOf(name) !== index)];
  if (again)
    refuse(
      path,
      again.place,
      'this drive is in the list twice, and letter case does not distinguish folders; remove one',
    );
  return grants;
}

/** Parses one in the list of a user's drives: a name, or an object. */
function grantIn(node: ConfigNode, path: string): Grant {
  if (node.kind === 'scalar' && typeof node.value === 'string') return { drive: node.value };
  const fields = fieldsOf(node, path, 'a drive of a user');
  refuseUnknown(fields, GRANT_KEYS, path, 'a drive of a user');
  return grantOf(fields, node, path);
}

function grantOf(fields: Fields, { place }: ConfigNode, path: string): Grant {
  const { texts, isReadOnly } = collect({
    texts: () => textsOf(fields, ['drive', 'root'], path),
    isReadOnly: () => switchIn(fields, 'read-only', path),
  });
  const [drive, root] = texts;
  if (drive === undefined) refuse(path, place, 'this user has no "drive"');
  const folder =
    root && rootOf({ text: root, origin: originOf('root', path, fields.get('root')?.place ?? place) });
  return { drive, ...(isReadOnly && { isReadOnly }), ...(folder && { root: folder }) };
}

function refuseUnknown(fields: Fields, known: readonly string[], path: string, what: string): void {
  collectAll(
    [...fields].map(([key, { place }]) => () => {
      if (!known.includes(key))
        refuse(path, place, `unknown key "${key}"${didYouMean(key, known)}; ${what} has ${known.join(', ')}`);
    }),
  );
}

function switchIn(fields: Fields, key: string, path: string): boolean {
  const field = fields.get(key);
  if (!field) return false;
  const value = field.node.kind === 'scalar' ? field.node.value : undefined;
  if (typeof value !== 'boolean')
    refuse(path, field.node.place, `"${key}" must be true or false, without quotes`);
  return value;
}

function textsOf(fields: Fields, keys: readonly string[], path: string): readonly (string | undefined)[] {
  return collectAll(
    keys.map((key) => () => {
      const field = fields.get(key);
      return field && textOf(field.node, key, path);
    }),
  );
}
