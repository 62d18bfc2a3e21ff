import { childrenOf, davChild, isDav, type XmlElement } from '../xml/xml-element.ts';
import {
  type ComparableProperty,
  caselessIn,
  comparableIn,
  compare,
  type Found,
  folded,
  propertyIn,
  unsupportedSearch,
  type Value,
} from './comparable.ts';

/** What a resource is sorted by: one value for each property of the order. */
export type SortKeys = readonly (Value | undefined)[];

interface OrderedProperty {
  readonly property: ComparableProperty;
  readonly isCaseless: boolean;
  readonly sign: 1 | -1;
}

/** The order of a search (`DAV:orderby`, RFC 5323 §5.6), worked out once. */
export class SearchOrder {
  /** Whether dead properties must be loaded. */
  readonly needsDead: boolean;
  readonly #properties: readonly OrderedProperty[];

  /** Throws `DavError` 400 for a malformed order, 422 for one that davgate does not support. */
  constructor(orderby: XmlElement) {
    const byName = new Map<string, OrderedProperty>();
    for (const order of childrenOf(orderby)) {
      if (!isDav(order, 'order')) throw unsupportedSearch(`DAV:orderby by ${order.name} is not supported`);
      const property = comparableIn(order);
      const isCaseless = caselessIn(order);
      const key = `${propertyIn(order).name} ${isCaseless}`;
      // A property that has decided nothing before does not decide later.
      if (!byName.has(key))
        byName.set(key, { property, isCaseless, sign: davChild(order, 'descending') ? -1 : 1 });
    }
    this.#properties = [...byName.values()];
    this.needsDead = this.#properties.some(({ property }) => property.needsDead);
  }

  keysOf(found: Found): SortKeys {
    return this.#properties.map(({ property, isCaseless }) => {
      const value = property.valueOf(found);
      return value === undefined ? undefined : folded(value, isCaseless);
    });
  }

  compare(one: SortKeys, other: SortKeys): number {
    for (const [index, { sign }] of this.#properties.entries()) {
      const result = sign * compareOptional(one[index], other[index]);
      if (result !== 0) return result;
    }
    return 0;
  }
}

/** A missing value comes before all others (RFC 5323 §5.6.1). */
function compareOptional(one: Value | undefined, other: Value | undefined): number {
  if (one === undefined || other === undefined)
    return Number(one !== undefined) - Number(other !== undefined);
  return compare(one, other);
}
