import type { Entry, FileEntry } from '../../drive/files.ts';
import type { DeadProperty } from '../../state/properties.ts';
import { mediaTypeOf } from '../../util/media-types.ts';
import { entityTagOf } from '../conditions/preconditions.ts';
import { DavError } from '../errors.ts';
import { creationMsOf } from '../properties/creation-date.ts';
import { liveProperty, NO_LIVE_STATE } from '../properties/live-properties.ts';
import type { PropertyName } from '../properties/property-names.ts';
import { parseTime } from '../properties/property-times.ts';
import { childrenOf, DAV_NAMESPACE, davChild, isDav, textOf, type XmlElement } from '../xml/xml-element.ts';

/** A resource that a search looks at. `dead` is empty unless the search `needsDead`. */
export interface Found {
  readonly entry: Entry;
  readonly dead: readonly DeadProperty[];
}

/** Whether a resource matches; `undefined`: unknown, because it has no such property (RFC 5323 §5.5.1). */
type Truth = boolean | undefined;

type Test = (found: Found) => Truth;

/** A value that can be compared: text, a number of bytes, or a time in ms since 1970. */
type Value = string | number;

interface ComparableProperty {
  readonly valueOf: (found: Found) => Value | undefined;
  /** Whether the value depends on dead properties. */
  readonly needsDead?: true;
  /** Returns the value of a literal; `undefined` if it is none. */
  readonly parse: (literal: string) => Value | undefined;
}

/** Maximum number of operators in a search: each is evaluated for each resource. */
const OPERATORS_MAX = 100;

/** Maximum length of a literal, in characters: longer than any name. */
const LITERAL_LENGTH_MAX = 1_000;

const asText = (literal: string) => literal;
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

const COMPARISONS: ReadonlyMap<string, (order: number) => boolean> = new Map([
  ['eq', (order: number) => order === 0],
  ['lt', (order: number) => order < 0],
  ['gt', (order: number) => order > 0],
  ['lte', (order: number) => order <= 0],
  ['gte', (order: number) => order >= 0],
]);

/** The condition of a search (`DAV:where`, RFC 5323 §5.5), worked out once. */
export class SearchCondition {
  /** Whether dead properties must be loaded. */
  needsDead = false;
  readonly #test: Test;
  #operators = 0;

  /** Throws `DavError` 400 for a malformed condition, 422 for one that davgate cannot evaluate. */
  constructor(where: XmlElement | undefined) {
    this.#test = where ? this.#parse(onlyChild(where)) : () => true;
  }

  matches(found: Found): boolean {
    return this.#test(found) === true;
  }

  #parse(element: XmlElement): Test {
    this.#operators += 1;
    if (this.#operators > OPERATORS_MAX)
      throw new DavError(400, `the search has more than ${OPERATORS_MAX} operators`);
    const name = element.namespace === DAV_NAMESPACE ? element.name : `{${element.namespace}}${element.name}`;
    switch (name) {
      case 'and':
      case 'or':
        return combined(
          childrenOf(element).map((child) => this.#parse(child)),
          name,
        );
      case 'not': {
        const test = this.#parse(onlyChild(element));
        return (found) => negated(test(found));
      }
      case 'is-collection':
        return ({ entry }) => entry.kind === 'folder';
      case 'is-defined':
        return this.#isDefined(propertyIn(element));
      case 'like':
        return like(element, this.#comparable(element));
      default: {
        const holds = COMPARISONS.get(name);
        if (holds) return comparison(element, this.#comparable(element), holds);
        throw unsupportedSearch(`the operator ${name} is not supported`);
      }
    }
  }

  #isDefined(name: PropertyName): Test {
    const live = liveProperty(name);
    if (live?.needs !== undefined && live.needs !== 'dead')
      throw unsupportedSearch(`is-defined of the property ${name.name} is not supported`);
    this.needsDead ||= live === undefined || live.needs === 'dead';
    if (live) return ({ entry, dead }) => live.value(entry, NO_LIVE_STATE, dead) !== undefined;
    return ({ dead }) =>
      dead.some((property) => property.name === name.name && property.namespace === name.namespace);
  }

  #comparable(element: XmlElement): ComparableProperty {
    const property = comparableIn(element);
    this.needsDead ||= property.needsDead === true;
    return property;
  }
}

/** The order of a search (`DAV:orderby`, RFC 5323 §5.6), worked out once. */
export class SearchOrder {
  /** Whether dead properties must be loaded. */
  readonly needsDead: boolean;
  readonly #orders: readonly ((one: Found, other: Found) => number)[];

  /** Throws `DavError` 422 for an order that davgate does not support. */
  constructor(orderby: XmlElement) {
    const properties = childrenOf(orderby).map((order) => {
      if (!isDav(order, 'order')) throw unsupportedSearch(`DAV:orderby by ${order.name} is not supported`);
      return { order, property: comparableIn(order) };
    });
    this.needsDead = properties.some(({ property }) => property.needsDead);
    this.#orders = properties.map(({ order, property }) => {
      const sign = davChild(order, 'descending') ? -1 : 1;
      const isCaseless = caselessIn(order);
      return (one, other) =>
        sign * compareOptional(property.valueOf(one), property.valueOf(other), isCaseless);
    });
  }

  compare(one: Found, other: Found): number {
    for (const order of this.#orders) {
      const result = order(one, other);
      if (result !== 0) return result;
    }
    return 0;
  }
}

/** Returns the refusal of a search that the grammar allows, and that davgate cannot carry out. */
export function unsupportedSearch(message: string): DavError {
  return new DavError(422, message, { precondition: 'search-grammar-supported' });
}

function combined(tests: readonly Test[], name: 'and' | 'or'): Test {
  if (tests.length === 0) throw new DavError(400, `DAV:${name} must contain a condition`);
  const decisive = name === 'or';
  return (found) => {
    let result: Truth = !decisive;
    for (const test of tests) {
      const truth = test(found);
      if (truth === decisive) return decisive;
      if (truth === undefined) result = undefined;
    }
    return result;
  };
}

function negated(truth: Truth): Truth {
  return truth === undefined ? undefined : !truth;
}

function comparison(
  element: XmlElement,
  property: ComparableProperty,
  holds: (order: number) => boolean,
): Test {
  const literal = property.parse(literalIn(element));
  if (literal === undefined)
    throw new DavError(
      400,
      `the literal of DAV:${element.name} is not a value of ${propertyIn(element).name}`,
    );
  const isCaseless = caselessIn(element);
  return (found) => {
    const value = property.valueOf(found);
    return value === undefined ? undefined : holds(compare(value, literal, isCaseless));
  };
}

function like(element: XmlElement, property: ComparableProperty): Test {
  if (property.parse !== asText)
    throw unsupportedSearch(`DAV:like of ${propertyIn(element).name} is not supported: it is not text`);
  const isCaseless = caselessIn(element);
  const literal = literalIn(element);
  const pattern = likePattern(isCaseless ? literal.toLowerCase() : literal);
  return (found) => {
    const value = property.valueOf(found);
    if (typeof value !== 'string') return undefined;
    return matchesPattern([...(isCaseless ? value.toLowerCase() : value)], pattern);
  };
}

const ANY = Symbol('any text');
const ONE = Symbol('one character');
type Pattern = readonly (string | typeof ANY | typeof ONE)[];

/** `%` stands for any text, `_` for one character, and `\` takes the meaning of what follows (RFC 5323 §5.12). */
function likePattern(literal: string): Pattern {
  const pattern: (string | typeof ANY | typeof ONE)[] = [];
  let isEscaped = false;
  for (const character of literal) {
    if (!isEscaped && character === '\\') {
      isEscaped = true;
      continue;
    }
    if (isEscaped) pattern.push(character);
    else pattern.push(character === '%' ? ANY : character === '_' ? ONE : character);
    isEscaped = false;
  }
  if (isEscaped) throw new DavError(400, 'the literal of DAV:like ends with the escape "\\"');
  return pattern;
}

/** Takes at most the product of the two lengths, whatever the pattern: a regular expression could take forever. */
function matchesPattern(text: readonly string[], pattern: Pattern): boolean {
  let [at, inPattern] = [0, 0];
  let [restart, restartAt] = [-1, 0];
  while (at < text.length) {
    const expected = pattern[inPattern];
    if (expected === ANY) {
      inPattern += 1;
      [restart, restartAt] = [inPattern, at];
    } else if (expected !== undefined && (expected === ONE || expected === text[at])) {
      at += 1;
      inPattern += 1;
    } else if (restart >= 0) {
      restartAt += 1;
      [at, inPattern] = [restartAt, restart];
    } else return false;
  }
  return pattern.slice(inPattern).every((expected) => expected === ANY);
}

function comparableIn(element: XmlElement): ComparableProperty {
  const { namespace, name } = propertyIn(element);
  const property = namespace === DAV_NAMESPACE ? COMPARABLE.get(name) : undefined;
  if (property) return property;
  throw unsupportedSearch(
    `the property ${name} cannot be compared in a search; those that can are ${[...COMPARABLE.keys()].join(', ')}`,
  );
}

function propertyIn(element: XmlElement): PropertyName {
  const prop = davChild(element, 'prop');
  const [property, second] = prop ? childrenOf(prop) : [];
  if (!property || second)
    throw new DavError(400, `DAV:${element.name} must contain DAV:prop with one property`);
  return property;
}

function literalIn(element: XmlElement): string {
  if (davChild(element, 'typed-literal')) throw unsupportedSearch('DAV:typed-literal is not supported');
  const literal = davChild(element, 'literal');
  if (!literal) throw new DavError(400, `DAV:${element.name} must contain DAV:literal`);
  const text = textOf(literal).normalize('NFC');
  if (text.length > LITERAL_LENGTH_MAX)
    throw new DavError(400, `a literal has more than ${LITERAL_LENGTH_MAX} characters`);
  return text;
}

/** Names are compared in any letter case unless the search says otherwise, as the drive compares them. */
function caselessIn({ attributes }: XmlElement): boolean {
  return attributes.find(({ name }) => name === 'caseless')?.value !== 'no';
}

function compare(one: Value, other: Value, isCaseless: boolean): number {
  if (typeof one === 'number' && typeof other === 'number') return one - other;
  const [left, right] = [String(one), String(other)].map((text) => (isCaseless ? text.toLowerCase() : text));
  return left === right ? 0 : (left ?? '') < (right ?? '') ? -1 : 1;
}

/** A missing value comes before all others (RFC 5323 §5.6.1). */
function compareOptional(one: Value | undefined, other: Value | undefined, isCaseless: boolean): number {
  if (one === undefined || other === undefined)
    return Number(one !== undefined) - Number(other !== undefined);
  return compare(one, other, isCaseless);
}

function onlyChild(element: XmlElement): XmlElement {
  const [child, second] = childrenOf(element);
  if (!child || second) throw new DavError(400, `DAV:${element.name} must contain exactly one condition`);
  return child;
}

/** Parses a date, or a time without seconds, to ms since 1970. */
function parseDay(text: string): number | undefined {
  if (!/^\d{4}-\d\d-\d\d(T\d\d:\d\d(Z|[+-]\d\d:\d\d))?$/.test(text)) return undefined;
  const ms = Date.parse(text);
  return Number.isNaN(ms) ? undefined : ms;
}
