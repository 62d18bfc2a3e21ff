import { didYouMean } from '../util/similar.ts';
import { collectAll } from './collect.ts';
import type { ConfigNode, Place } from './config-text.ts';
import { ConfigError } from './settings.ts';

/** Throws `ConfigError` for a place of a file. */
export function refuse(path: string, place: Place, reason: string): never {
  throw new ConfigError(`cannot read ${path}: ${place}: ${reason}`);
}

/** The members of an object by key, with the place of the key. */
export type Fields = ReadonlyMap<string, { readonly place: Place; readonly node: ConfigNode }>;

/** Throws `ConfigError` for another kind of value and for a duplicate key. */
export function fieldsOf(node: ConfigNode, path: string, what: string): Fields {
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

/** Returns the origin of a value, for error messages. */
export function originOf(key: string, path: string, place: Place): string {
  return `"${key}" in ${path}, ${place}`;
}

/** Returns a value that is text, or for a switch `true` or `false`. Throws `ConfigError`, without the value. */
export function textOf(node: ConfigNode, key: string, path: string, isSwitch = false): string {
  const value = node.kind === 'scalar' ? node.value : undefined;
  if (typeof value === 'string' || (isSwitch && typeof value === 'boolean')) return String(value);
  if (value === null) refuse(path, node.place, `"${key}" is empty; write a value or leave it out`);
  return refuse(path, node.place, `"${key}" must be ${isSwitch ? 'true or false' : 'a text in quotes'}`);
}

/** Returns the texts of several keys. Throws `ConfigError`. */
export function textsOf(
  fields: Fields,
  keys: readonly string[],
  path: string,
): readonly (string | undefined)[] {
  return collectAll(
    keys.map((key) => () => {
      const field = fields.get(key);
      return field && textOf(field.node, key, path);
    }),
  );
}

/** Throws `ConfigError` for keys that are not `known`. `what` has the keys. */
export function refuseUnknown(fields: Fields, known: readonly string[], path: string, what: string): void {
  collectAll(
    [...fields].map(([key, { place }]) => () => {
      if (!known.includes(key))
        refuse(path, place, `unknown key "${key}"${didYouMean(key, known)}; ${what} has ${known.join(', ')}`);
    }),
  );
}

/** Returns a size as text; YAML reads one without a unit as a number. */
export function sizeTextOf(node: ConfigNode): string | undefined {
  const value = node.kind === 'scalar' ? node.value : undefined;
  return typeof value === 'string' || typeof value === 'number' ? `${value}` : undefined;
}
