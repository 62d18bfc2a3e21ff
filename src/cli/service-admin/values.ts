import { ConfigError } from '../../config/settings.ts';
import { type AppStatus, LINKED_USERS_MAX } from '../../service/accounts/apps.ts';
import { isScope, SCOPES, type Scope } from '../../service/accounts/scopes.ts';
import { parseSize } from '../../util/size-text.ts';

/** Values of a command's options by name. */
export type Values = Readonly<Record<string, unknown>>;

/** Returns the value of `--name`; `undefined` without one. Throws `ConfigError` for an empty value. */
export function textOf(values: Values, name: string): string | undefined {
  const value = values[name];
  if (value === '')
    throw new ConfigError(`--${name}: the value is empty; write --${name} with a value, or leave it out`);
  return typeof value === 'string' ? value : undefined;
}

export function requiredText(values: Values, name: string): string {
  const text = textOf(values, name);
  if (text === undefined) throw new ConfigError(`--${name} is missing; --help explains it`);
  return text;
}

/** Returns all values of a repeatable option. */
function textsOf(values: Values, name: string): readonly string[] {
  const value = values[name];
  return Array.isArray(value) ? value.filter((one) => typeof one === 'string') : [];
}

/** Help on the value of `--scopes`. */
export const SCOPES_HELP = `X.write does not include X.read. Scopes: ${SCOPES.join(', ')}`;

/** Returns the line that a command prints for scopes. */
export function scopesLine(scopes: readonly Scope[]): string {
  return `scopes      ${scopes.join(' ')}`;
}

/** Parses `--scopes`: words separated by commas or spaces, or `all`. */
export function scopesOf(values: Values): readonly Scope[] | undefined {
  const text = textOf(values, 'scopes');
  if (text === undefined) return undefined;
  const words = text === 'all' ? SCOPES : text.split(/[\s,]+/).filter(Boolean);
  const unknown = words.find((word) => !isScope(word));
  if (unknown !== undefined)
    throw new ConfigError(`--scopes ${unknown}: no such scope; the scopes are ${SCOPES.join(', ')}`);
  if (words.length === 0)
    throw new ConfigError(`--scopes: the list is empty; name one or more of ${SCOPES.join(', ')}`);
  return SCOPES.filter((scope) => words.includes(scope));
}

/** Returns the values of `--redirect-uri` without duplicates. */
export function redirectUrisOf(values: Values): readonly string[] {
  return [...new Set(textsOf(values, 'redirect-uri'))];
}

export function statusOf(values: Values): AppStatus | undefined {
  const text = textOf(values, 'status');
  if (text === undefined || isStatus(text)) return text;
  throw new ConfigError(`--status ${text}: must be ${Object.keys(LINKED_USERS_MAX).join(', ')}`);
}

function isStatus(text: string): text is AppStatus {
  return Object.hasOwn(LINKED_USERS_MAX, text);
}

/** Parses `--quota`, a number of bytes or of a larger unit. */
export function quotaBytes(values: Values): number | undefined {
  const text = textOf(values, 'quota');
  if (text === undefined) return undefined;
  const bytes = parseSize(text);
  if (bytes === undefined)
    throw new ConfigError(`--quota ${text}: not a size; write it like 500MB, 20GiB or 2TB`);
  return bytes;
}

/** Parses an option whose value is `yes` or `no`. */
export function yesOrNo(values: Values, name: string): boolean | undefined {
  const text = textOf(values, name);
  if (text === undefined) return undefined;
  if (text !== 'yes' && text !== 'no') throw new ConfigError(`--${name} ${text}: must be yes or no`);
  return text === 'yes';
}

/** Maximum lifetime of a token, in hours: a hundred years, which a `Date` can still express. */
const HOURS_MAX = 876_000;

/** Parses `--hours`. Returns milliseconds. */
export function hoursMs(values: Values): number | undefined {
  const text = textOf(values, 'hours');
  if (text === undefined) return undefined;
  const hours = /^\d+(\.\d+)?$/.test(text) ? Number(text) : 0;
  if (hours <= 0) throw new ConfigError(`--hours ${text}: must be a number above 0`);
  if (hours > HOURS_MAX)
    throw new ConfigError(
      `--hours ${text}: must be at most ${HOURS_MAX}, a hundred years; without --hours, the token is valid until it is revoked`,
    );
  return Math.ceil(hours * 3_600_000);
}
