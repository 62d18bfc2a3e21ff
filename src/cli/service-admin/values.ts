import { ConfigError } from '../../config/settings.ts';
import { type AppStatus, LINKED_USERS_MAX, redirectUriProblem } from '../../service/accounts/apps.ts';
import { isScope, SCOPES, type Scope } from '../../service/accounts/scopes.ts';

/** What stands behind the options of a command, by their names. */
export type Values = Readonly<Record<string, string | boolean | readonly (string | boolean)[] | undefined>>;

/** The value of `--name`, which is there once or not at all. */
export function textOf(values: Values, name: string): string | undefined {
  const value = values[name];
  if (value === '') throw new ConfigError(`--${name}: a value is missing`);
  return typeof value === 'string' ? value : undefined;
}

export function requiredText(values: Values, name: string): string {
  const text = textOf(values, name);
  if (text === undefined) throw new ConfigError(`--${name} is missing; --help shows how it is written`);
  return text;
}

/** All values of `--name`, which may be given several times. */
function textsOf(values: Values, name: string): readonly string[] {
  const value = values[name];
  return Array.isArray(value) ? value.filter((one) => typeof one === 'string') : [];
}

/** The line of `--help` about scopes, below what says whose they are. */
export const SCOPES_HELP = `                      Only those that are named: X.write does not include X.read. Scopes:
${SCOPES.map((scope) => `                        ${scope}`).join('\n')}`;

/** The scopes as a command prints them. */
export function scopesLine(scopes: readonly Scope[]): string {
  return `scopes      ${scopes.join(' ')}`;
}

/** `--scopes`: words between commas or spaces, or `all`. */
export function scopesOf(values: Values): readonly Scope[] | undefined {
  const text = textOf(values, 'scopes');
  if (text === undefined) return undefined;
  const words = text === 'all' ? SCOPES : text.split(/[\s,]+/).filter(Boolean);
  const unknown = words.find((word) => !isScope(word));
  if (unknown !== undefined)
    throw new ConfigError(`--scopes ${unknown}: no such scope; there are ${SCOPES.join(', ')}`);
  if (words.length === 0) throw new ConfigError(`--scopes: name one or more of ${SCOPES.join(', ')}`);
  return SCOPES.filter((scope) => words.includes(scope));
}

/** `--redirect-uri`, each once. */
export function redirectUrisOf(values: Values): readonly string[] {
  const uris = new Set(textsOf(values, 'redirect-uri'));
  for (const uri of uris) {
    const problem = redirectUriProblem(uri);
    if (problem) throw new ConfigError(`--redirect-uri ${uri} ${problem}`);
  }
  return [...uris];
}

export function statusOf(values: Values): AppStatus | undefined {
  const text = textOf(values, 'status');
  if (text === undefined || isStatus(text)) return text;
  throw new ConfigError(`--status ${text}: must be ${Object.keys(LINKED_USERS_MAX).join(', ')}`);
}

function isStatus(text: string): text is AppStatus {
  return Object.hasOwn(LINKED_USERS_MAX, text);
}

const UNITS_BYTES: Readonly<Record<string, number>> = {
  B: 1,
  KB: 1e3,
  MB: 1e6,
  GB: 1e9,
  TB: 1e12,
  KIB: 2 ** 10,
  MIB: 2 ** 20,
  GIB: 2 ** 30,
  TIB: 2 ** 40,
};

/** `--quota`: a number of bytes, or of one of the usual units. */
export function quotaBytes(values: Values): number | undefined {
  const text = textOf(values, 'quota');
  if (text === undefined) return undefined;
  const [, number, unit = ''] = /^(\d+(?:\.\d+)?) ?([a-z]*)$/i.exec(text) ?? [];
  const bytes = Math.round(Number(number) * (UNITS_BYTES[unit.toUpperCase() || 'B'] ?? Number.NaN));
  if (!Number.isSafeInteger(bytes))
    throw new ConfigError(`--quota ${text}: no size; write it like 500MB, 20GiB or 2TB`);
  return bytes;
}

/** `--permanent-delete yes|no`. */
export function yesOrNo(values: Values, name: string): boolean | undefined {
  const text = textOf(values, name);
  if (text === undefined) return undefined;
  if (text !== 'yes' && text !== 'no') throw new ConfigError(`--${name} ${text}: must be yes or no`);
  return text === 'yes';
}

/** A hundred years: a time beyond what a date can be would be of no use to anybody. */
const HOURS_MAX = 876_000;

/** `--hours`: as milliseconds. */
export function hoursMs(values: Values): number | undefined {
  const text = textOf(values, 'hours');
  if (text === undefined) return undefined;
  const hours = /^\d+(\.\d+)?$/.test(text) ? Number(text) : 0;
  if (hours <= 0) throw new ConfigError(`--hours ${text}: must be a number above 0`);
  if (hours > HOURS_MAX)
    throw new ConfigError(
      `--hours ${text}: must be at most ${HOURS_MAX}, a hundred years; left out, the token lives until it is revoked`,
    );
  return Math.ceil(hours * 3_600_000);
}
