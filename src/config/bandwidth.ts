import { parseSize } from '../util/size-text.ts';
import { type Fields, fieldsOf, originOf, refuse, refuseUnknown, sizeTextOf } from './fields.ts';
import type { Bandwidth } from './grant.ts';
import { ConfigError, type Setting, type SettingName, type Settings } from './settings.ts';

/** Keys of `bandwidth` in a configuration file, and the settings that they stand for at its top. */
const KEYS = { download: 'bandwidth-download', upload: 'bandwidth-upload' } as const satisfies Readonly<
  Record<string, SettingName>
>;

/** Smallest limit, in bytes a second: clients give up at a lower rate. */
const BYTES_MIN = 1_000;

/** The schema of `bandwidth`, for editors. */
export const BANDWIDTH_SCHEMA = {
  type: 'object',
  additionalProperties: false,
  properties: Object.fromEntries(Object.keys(KEYS).map((key) => [key, { type: ['string', 'integer'] }])),
};

/** Returns the limits of all users together. Throws `ConfigError`. */
export function bandwidthOf(settings: Settings): Bandwidth | undefined {
  return bandwidthFrom(settings.get(KEYS.download), settings.get(KEYS.upload));
}

/** Returns the limits of one user. Throws `ConfigError`. */
export function bandwidthIn(fields: Fields, path: string): Bandwidth | undefined {
  const settings = bandwidthSettings(fields.get('bandwidth'), path);
  return bandwidthOf(new Map(settings));
}

/** Returns `bandwidth` of a configuration file as settings. Throws `ConfigError`. */
export function bandwidthSettings(
  field: ReturnType<Fields['get']>,
  path: string,
): readonly (readonly [SettingName, Setting])[] {
  if (!field) return [];
  const fields = fieldsOf(field.node, path, '"bandwidth"');
  const keys = Object.entries(KEYS);
  refuseUnknown(
    fields,
    keys.map(([key]) => key),
    path,
    '"bandwidth"',
  );
  return keys.flatMap(([key, name]) => {
    const node = fields.get(key)?.node;
    if (!node) return [];
    const text = sizeTextOf(node) ?? refuse(path, node.place, `"${key}" must be a size, like 10MB`);
    return [[name, { text, origin: originOf(key, path, node.place) }] as const];
  });
}

function bandwidthFrom(download: Setting | undefined, upload: Setting | undefined): Bandwidth | undefined {
  if (!download && !upload) return undefined;
  return {
    ...(download && { downloadBytes: rateOf(download) }),
    ...(upload && { uploadBytes: rateOf(upload) }),
  };
}

function rateOf({ text, origin }: Setting): number {
  const bytes = parseSize(text) ?? 0;
  if (bytes < BYTES_MIN)
    throw new ConfigError(`${origin}: "${text}" is not a size of 1kB or more, like 500kB or 10MB`);
  return bytes;
}
