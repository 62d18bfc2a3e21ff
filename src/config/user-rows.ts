import { parseSize } from '../util/size-text.ts';
import { bandwidthIn } from './bandwidth.ts';
import { collect, collectAll } from './collect.ts';
import { type ConfigNode, type Place, parseConfigText } from './config-text.ts';
import { rootOf } from './drive-config.ts';
import { type Fields, fieldsOf, originOf, refuse, refuseUnknown, sizeTextOf, textsOf } from './fields.ts';
import { foldersIn } from './folder-grants.ts';
import type { Bandwidth, Grant } from './grant.ts';
import { refuseUnsayable } from './settings.ts';
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
  /** Whether the htpasswd file, the external check or the OpenID Connect provider knows the user, if anything does. */
  readonly isListedElsewhere?: true;
  readonly grants: readonly Grant[];
  readonly bandwidth?: Bandwidth;
}

/** A user, and where it stands, for error messages. */
export interface UserRow extends UserConfig {
  readonly origin: string;
}

/** What to do with a user without a password, or with two. */
export const WRITE_PASSWORD = 'write either "password" or "password-hash" (davgate hash-password makes one)';

/** Parses the list of users of a file at `path`. Throws `ConfigError`. */
export function userRowsOf(node: ConfigNode, path: string): readonly UserRow[] {
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
  const { texts, grants, bandwidth } = collect({
    keys: () =>
      refuseUnknown(
        fields,
        USER_KEYS.map(({ name }) => name),
        path,
        'a user',
      ),
    texts: () => textsOf(fields, ['name', 'password', 'password-hash'], path),
    grants: () => grantsOf(fields, node, path),
    bandwidth: () => bandwidthIn(fields, path),
  });
  const [given, password, passwordHash] = texts;
  if (given === undefined) refuse(path, node.place, 'this user has no "name"');
  const placeOf = (key: string) => fields.get(key)?.node.place ?? node.place;
  const name = nameIn(given, path, placeOf('name'));
  if (password === '' || (password !== undefined && passwordHash !== undefined))
    refuse(path, node.place, `user ${name}: ${WRITE_PASSWORD}`);
  if (password !== undefined)
    refuseUnsayable({ text: password, origin: originOf('password', path, placeOf('password')) });
  const origin = `cannot read ${path}: ${node.place}: user ${name}`;
  return {
    name,
    grants,
    origin,
    ...(bandwidth && { bandwidth }),
    ...(password !== undefined && { password }),
    ...(passwordHash !== undefined && { passwordHash }),
  };
}

/** Returns a name in the form of a login. Throws `ConfigError`. */
function nameIn(text: string, path: string, place: Place): string {
  if (text === '' || text.includes(':')) refuse(path, place, '"name" must be a name without a colon');
  refuseUnsayable({ text, origin: originOf('name', path, place) });
  return text.normalize('NFC');
}

/** Keys of the answer of an external check: those of a user without the passwords. */
const ANSWER_KEYS = USER_KEYS.map(({ name }) => name).filter((name) => !name.startsWith('password'));

/** Parses the answer of an external check. Each key may be missing. Throws `ConfigError`, which names `origin`. */
export async function parseCheckedUser(text: string, origin: string): Promise<Partial<UserConfig>> {
  const { root, faults } = await parseConfigText(text);
  const [fault] = faults;
  if (fault) refuse(origin, fault.place, fault.reason);
  if (!root) return {};
  const fields = fieldsOf(root, origin, 'the answer');
  refuseUnknown(fields, ANSWER_KEYS, origin, 'the answer');
  const [name] = textsOf(fields, ['name'], origin);
  const bandwidth = bandwidthIn(fields, origin);
  const hasGrants = ANSWER_KEYS.some((key) => key !== 'name' && key !== 'bandwidth' && fields.has(key));
  return {
    ...(name !== undefined && { name: nameIn(name, origin, root.place) }),
    ...(bandwidth && { bandwidth }),
    ...(hasGrants && { grants: grantsOf(fields, root, origin) }),
  };
}

function grantsOf(fields: Fields, user: ConfigNode, path: string): readonly Grant[] {
  const list = fields.get('drives');
  if (!list) return [grantOf(fields, user, path)];
  const beside = (['drive', 'root', 'quota', 'folders'] as const).find((key) => fields.has(key));
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
  const { texts, isReadOnly, quotaBytes, folders } = collect({
    texts: () => textsOf(fields, ['drive', 'root'], path),
    isReadOnly: () => switchIn(fields, 'read-only', path),
    quotaBytes: () => sizeIn(fields, 'quota', path),
    folders: () => foldersIn(fields, path),
  });
  const [drive, root] = texts;
  if (drive === undefined) refuse(path, place, 'this user has no "drive"');
  const folder =
    root && rootOf({ text: root, origin: originOf('root', path, fields.get('root')?.place ?? place) });
  if (isReadOnly && folders?.some(({ right }) => right === 'read-write'))
    refuse(
      path,
      fields.get('folders')?.place ?? place,
      '"read-only" excludes folders that are read-write; write "/": read-only in "folders" instead',
    );
  return {
    drive,
    ...(isReadOnly && { isReadOnly }),
    ...(folder && { root: folder }),
    ...(quotaBytes !== undefined && { quotaBytes }),
    ...(folders && { folders }),
  };
}

function switchIn(fields: Fields, key: string, path: string): boolean {
  const field = fields.get(key);
  if (!field) return false;
  const value = field.node.kind === 'scalar' ? field.node.value : undefined;
  if (typeof value !== 'boolean')
    refuse(path, field.node.place, `"${key}" must be true or false, without quotes`);
  return value;
}

/** Returns a number of bytes. Throws `ConfigError`. */
function sizeIn(fields: Fields, key: string, path: string): number | undefined {
  const field = fields.get(key);
  if (!field) return undefined;
  const bytes = parseSize(sizeTextOf(field.node) ?? '');
  if (bytes === undefined)
    refuse(path, field.node.place, `"${key}" must be a size, like 500MB, 20GiB or 2TB`);
  return bytes;
}
