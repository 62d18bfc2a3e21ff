import { BadCall } from './failures.ts';

/**
 * Converts a decoded JSON value to a handler's type, or throws `BadCall` with the service's text (`commit: path:
 * expected string, got integer`). Not a library, because the texts are part of the API, and so are null for absent
 * fields and bare strings for void union members.
 */
export type Schema<T> = (value: unknown) => T;

/** A member of a struct, and its value when it is absent or null. */
export interface Field<T> {
  readonly schema: Schema<T>;
  readonly absent?: { readonly value: T };
}

/** Makes a field that must be present. */
export function required<T>(schema: Schema<T>): Field<T> {
  return { schema };
}

/** Makes a field that is `undefined` when absent. */
export function optional<T>(schema: Schema<T>): Field<T | undefined> {
  return { schema, absent: { value: undefined } };
}

/** Makes a field that is `value` when absent. */
export function withDefault<T>(schema: Schema<T>, value: T): Field<T> {
  return { schema, absent: { value } };
}

export type Fields = Readonly<Record<string, Field<unknown>>>;
/** The type of a struct with these fields. */
export type StructOf<F extends Fields> = { readonly [K in keyof F]: F[K] extends Field<infer T> ? T : never };

/** Makes a schema of an object with these fields and no others. */
export function struct<F extends Fields>(fields: F): Schema<StructOf<F>> {
  return (value) => {
    const object = objectOf(value);
    refuseUnknown(object, Object.keys(fields));
    const entries = Object.entries(fields).map(([name, field]) => [name, fieldOf(object, name, field)]);
    // A cast, because each entry was made by the schema that StructOf reads its type from.
    return Object.fromEntries(entries) as StructOf<F>;
  };
}

type Members = Readonly<Record<string, Schema<unknown> | null>>;
type UnionOf<M extends Members> = {
  readonly [K in keyof M]: M[K] extends Schema<infer T>
    ? { readonly tag: K; readonly value: T }
    : { readonly tag: K };
}[keyof M];

/**
 * Makes a schema of a tagged union. `null` marks a void member, which may also be a bare string; other members have
 * their value under a key named like the tag.
 */
export function union<M extends Members>(members: M): Schema<UnionOf<M>> {
  return (value) => {
    const object = typeof value === 'string' ? undefined : objectOf(value);
    const tag = object ? object['.tag'] : value;
    if (typeof tag !== 'string') throw new BadCall("missing required field '.tag'");
    const member = Object.hasOwn(members, tag) ? members[tag] : undefined;
    if (member === undefined) throw new BadCall(`unknown tag ${quoted(tag)}`);
    if (!object && member) throw new BadCall(`expected object for '${tag}', got symbol`);
    refuseUnknown(object ?? {}, member ? ['.tag', tag] : ['.tag']);
    const made = member ? { tag, value: fieldOf(object ?? {}, tag, required(member)) } : { tag };
    // A cast, because the tag is one of the members' keys and the value came from that member's schema.
    return made as UnionOf<M>;
  };
}

export const boolean: Schema<boolean> = (value) => {
  if (typeof value !== 'boolean') throw new BadCall(`expected boolean, got ${kindOf(value)}`);
  return value;
};

/** Makes a schema of a safe integer within these limits, both included. */
export function integer(limits: { readonly min: number; readonly max: number }): Schema<number> {
  const min = Math.max(limits.min, Number.MIN_SAFE_INTEGER);
  const max = Math.min(limits.max, Number.MAX_SAFE_INTEGER);
  return (value) => {
    if (typeof value !== 'number' || !Number.isInteger(value))
      throw new BadCall(`expected integer, got ${kindOf(value)}`);
    if (value < min) throw new BadCall(`must be at least ${min}, got ${value}`);
    if (value > max) throw new BadCall(`must be at most ${max}, got ${value}`);
    return value;
  };
}

/** Makes a schema of a number within these limits, both included. */
export function number(limits: { readonly min: number; readonly max: number }): Schema<number> {
  return (value) => {
    if (typeof value !== 'number') throw new BadCall(`expected number, got ${kindOf(value)}`);
    if (value < limits.min) throw new BadCall(`must be at least ${limits.min}, got ${value}`);
    if (value > limits.max) throw new BadCall(`must be at most ${limits.max}, got ${value}`);
    return value;
  };
}

export interface StringLimits {
  readonly minLength?: number;
  readonly maxLength?: number;
  /** `shown` is the published pattern; `test` matches the same strings. */
  readonly pattern?: { readonly shown: string; readonly test: RegExp };
}

export function string({ minLength = 0, maxLength, pattern }: StringLimits = {}): Schema<string> {
  return (value) => {
    if (typeof value !== 'string') throw new BadCall(`expected string, got ${kindOf(value)}`);
    if (value.length < minLength)
      throw new BadCall(`must be at least ${minLength} characters, got ${value.length}`);
    if (maxLength !== undefined && value.length > maxLength)
      throw new BadCall(`must be at most ${maxLength} characters, got ${value.length}`);
    if (pattern && !pattern.test.test(value))
      throw new BadCall(`${quoted(value)} did not match pattern '${pattern.shown}'`);
    return value;
  };
}

/** Makes a schema of a list; both limits of its length are included. */
export function list<T>(
  item: Schema<T>,
  limits: { readonly min?: number; readonly max: number },
): Schema<readonly T[]> {
  return (value) => {
    if (!Array.isArray(value)) throw new BadCall(`expected list, got ${kindOf(value)}`);
    if (value.length < (limits.min ?? 0))
      throw new BadCall(`must have at least ${limits.min} items, got ${value.length}`);
    if (value.length > limits.max)
      throw new BadCall(`must have at most ${limits.max} items, got ${value.length}`);
    return value.map((one: unknown, index) => within(String(index), () => item(one)));
  };
}

const TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/;

/** A time as `%Y-%m-%dT%H:%M:%SZ`, to ms since 1970. Fractions, offsets and bare dates are refused. */
export const timestamp: Schema<number> = (value) => {
  if (typeof value !== 'string') throw new BadCall(`expected timestamp, got ${kindOf(value)}`);
  const ms = TIMESTAMP.test(value) ? Date.parse(value) : Number.NaN;
  // Date.parse rolls February 30th over into March.
  if (Number.isNaN(ms) || new Date(ms).toISOString().slice(0, 19) !== value.slice(0, 19))
    throw new BadCall(`time data ${quoted(value)} does not match format '%Y-%m-%dT%H:%M:%SZ'`);
  return ms;
};

/** A field that the service knows but does not support: only empty values are accepted. */
export const unsupported: Schema<undefined> = (value) => {
  if (Array.isArray(value) && value.length === 0) return undefined;
  throw new BadCall('not supported by this service; leave the field out');
};

/** Runs `read`, and puts `place` before the message of what it throws. */
export function within<T>(place: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof BadCall) throw new BadCall(`${place}: ${error.message}`);
    throw error;
  }
}

function fieldOf<T>(object: Readonly<Record<string, unknown>>, name: string, field: Field<T>): T {
  const value = Object.hasOwn(object, name) ? object[name] : null;
  if (value !== null && value !== undefined) return within(name, () => field.schema(value));
  if (field.absent) return field.absent.value;
  throw new BadCall(`missing required field '${name}'`);
}

function objectOf(value: unknown): Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new BadCall(`expected object, got ${kindOf(value)}`);
  return value as Readonly<Record<string, unknown>>;
}

function refuseUnknown(object: Readonly<Record<string, unknown>>, known: readonly string[]): void {
  const unknown = Object.keys(object).find((name) => !known.includes(name));
  if (unknown !== undefined) throw new BadCall(`unknown field ${quoted(unknown)}`);
}

function kindOf(value: unknown): string {
  if (value === null || value === undefined) return 'null';
  if (Array.isArray(value)) return 'list';
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'float';
  return typeof value;
}

/** Maximum length of a value quoted in an error message, in characters. */
const QUOTED_CHARACTERS_MAX = 200;

function quoted(text: string): string {
  const shown = text.length > QUOTED_CHARACTERS_MAX ? `${text.slice(0, QUOTED_CHARACTERS_MAX)}…` : text;
  return `'${shown.replaceAll(/\p{Cc}/gu, (control) => JSON.stringify(control).slice(1, -1))}'`;
}
