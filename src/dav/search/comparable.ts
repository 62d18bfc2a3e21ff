import type { Entry, FileEntry } from '../../drive/files.ts';
import type { DeadProperty } from '../../state/properties.ts';
import { mediaTypeOf } from '../../util/media-types.ts';
import { entityTagOf } from '../conditions/preconditions.ts';
import { DavError } from '../errors.ts';
import { creationMsOf } from '../properties/creation-date.ts';
import type { PropertyName } from '../properties/property-names.ts';
import { parseTime } from '../properties/property-times.ts';
import { childrenOf, DAV_NAMESPACE, davChild, type XmlElement } from '../xml/xml-element.ts';

/** A resource that a search looks at. `dead` is empty unless the search `needsDead`. */
export interface Found {
  readonly entry: Entry;
  readonly dead: readonly DeadProperty[];
}

/** A value that can be compared: text, a number of bytes, or a time in ms since 1970. */
export type Value = string | number;

/** A property whose values a search can compare. */
export interface ComparableProperty {
  readonly valueOf: (found: Found) => Value | undefined;
  /** Whether the value depends on dead properties. */
  readonly needsDead?: true;
  /** Returns the value of a literal; `undefined` if it is none. */
  readonly parse: (literal: string) => Value | undefined;
}

export const asText = (literal: string) => literal;
const asNumber = (literal: string) => (/^\s*-?\d{1,15}\s*$/.test(literal) ? Number(literal) : undefined);
const asTime = (literal: string) => parseTime(literal.trim()) ?? parseDay(literal.trim());
const wholeSeconds = (ms: number | undefined) =>
  ms === undefined ? undefined : Math.floor(ms / 1000) * 1000;

function ofFile(read: (file: FileEntry) => Value): ComparableProperty['valueOf'] {
  return ({ entry }) => (entry.kind === 'file' ? read(entry) : undefined);
}

const COMPARABLE: ReadonlyMap<string, ComparableProperty> = new Map<string, ComparableProperty>([
  ['displayname', { valueOf: ({ entry }) => entry.name || '/', parse: asText }],
  [
    'getcontenttype',
    {
      valueOf: ofFile(({ name }) => mediaTypeOf(name) ?? 'application/octet-stream'),
      parse: asText,
    },
  ],
  ['getetag', { valueOf: ofFile(entityTagOf), parse: asText }],
  ['getcontentlength', { valueOf: ofFile(({ sizeBytes }) => sizeBytes), parse: asNumber }],
  ['getlastmodified', { valueOf: ({ entry }) => wholeSeconds(entry.modifiedMs), parse: asTime }],
  [
    'creationdate',
    {
      valueOf: ({ entry, dead }) => wholeSeconds(creationMsOf(entry, dead)),
      needsDead: true,
      parse: asTime,
    },
  ],
]);

/** Returns the refusal of a search that the grammar allows, and that davgate cannot carry out. */
export function unsupportedSearch(message: string): DavError {
  return new DavError(422, message, { precondition: 'search-grammar-supported' });
}

/** Returns the property that an element names. Throws `DavError` 422 if its values cannot be compared. */
export function comparableIn(element: XmlElement): ComparableProperty {
  const { namespace, name } = propertyIn(element);
  const property = namespace === DAV_NAMESPACE ? COMPARABLE.get(name) : undefined;
  if (property) return property;
  throw unsupportedSearch(
    `the property ${name} cannot be compared in a search; those that can are ${[...COMPARABLE.keys()].join(', ')}`,
  );
}

/** Returns the name of the one property in an element. Throws `DavError` 400. */
export function propertyIn(element: XmlElement): PropertyName {
  const prop = davChild(element, 'prop');
  const [property, second] = prop ? childrenOf(prop) : [];
  if (!property || second)
    throw new DavError(400, `DAV:${element.name} must contain DAV:prop with one property`);
  return property;
}

/** Names are compared in any letter case unless the search says otherwise, as the drive compares them. */
export function caselessIn({ attributes }: XmlElement): boolean {
  return attributes.find(({ name }) => name === 'caseless')?.value !== 'no';
}

/** Compares two values, texts as they are. */
export function compare(one: Value, other: Value): number {
  if (typeof one === 'number' && typeof other === 'number') return one - other;
  const [left, right] = [String(one), String(other)];
  return left === right ? 0 : left < right ? -1 : 1;
}

/** Returns the value by which others are compared with this one. */
export function folded(value: Value, isCaseless: boolean): Value {
  return isCaseless && typeof value === 'string' ? value.toLowerCase() : value;
}

/** Parses a date, or a time without seconds, to ms since 1970. */
function parseDay(text: string): number | undefined {
  if (!/^\d{4}-\d\d-\d\d(T\d\d:\d\d(Z|[+-]\d\d:\d\d))?$/.test(text)) return undefined;
  const ms = Date.parse(text);
  return Number.isNaN(ms) ? undefined : ms;
}
