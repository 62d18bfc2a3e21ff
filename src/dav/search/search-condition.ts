import { DavError } from '../errors.ts';
import { liveProperty, NO_LIVE_STATE } from '../properties/live-properties.ts';
import { isSameProperty, type PropertyName } from '../properties/property-names.ts';
import { childrenOf, DAV_NAMESPACE, davChild, textOf, type XmlElement } from '../xml/xml-element.ts';
import {
  asText,
  type ComparableProperty,
  caselessIn,
  comparableIn,
  compare,
  type Found,
  folded,
  propertyIn,
  unsupportedSearch,
} from './comparable.ts';
import { LikePattern } from './like-pattern.ts';

/** Whether a resource matches; `undefined`: unknown, because it has no such property (RFC 5323 §5.5.1). */
type Truth = boolean | undefined;

type Test = (found: Found) => Truth;

/** Maximum number of operators in a search: each is evaluated for each resource. */
const OPERATORS_MAX = 100;

/** Maximum length of a literal, in characters: longer than any name. */
const LITERAL_LENGTH_MAX = 1_000;

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
    return ({ dead }) => dead.some((property) => isSameProperty(property, name));
  }

  #comparable(element: XmlElement): ComparableProperty {
    const property = comparableIn(element);
    this.needsDead ||= property.needsDead === true;
    return property;
  }
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
  const wanted = folded(literal, isCaseless);
  return (found) => {
    const value = property.valueOf(found);
    return value === undefined ? undefined : holds(compare(folded(value, isCaseless), wanted));
  };
}

function like(element: XmlElement, property: ComparableProperty): Test {
  if (property.parse !== asText)
    throw unsupportedSearch(`DAV:like of ${propertyIn(element).name} is not supported: it is not text`);
  const isCaseless = caselessIn(element);
  const literal = literalIn(element);
  const pattern = new LikePattern(isCaseless ? literal.toLowerCase() : literal);
  return (found) => {
    const value = property.valueOf(found);
    return value === undefined ? undefined : pattern.matches(String(folded(value, isCaseless)));
  };
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

function onlyChild(element: XmlElement): XmlElement {
  const [child, second] = childrenOf(element);
  if (!child || second) throw new DavError(400, `DAV:${element.name} must contain exactly one condition`);
  return child;
}
