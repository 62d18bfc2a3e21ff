import type { Item } from './dav.ts';

export type Column = 'name' | 'size' | 'modified';

export interface Order {
  readonly by: Column;
  readonly isDescending: boolean;
}

/** Returns the items whose names contain every word of `filter`, folders first, in `order`. */
export function arranged(items: readonly Item[], order: Order, filter: string): readonly Item[] {
  const words = filter
    .toLocaleLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '');
  const wanted = items.filter(({ name }) => words.every((word) => name.toLocaleLowerCase().includes(word)));
  const compareNames = new Intl.Collator(undefined, { numeric: true }).compare;
  return wanted.sort((one, other) => {
    if (one.kind !== other.kind) return one.kind === 'folder' ? -1 : 1;
    const difference = quantity(one, order.by) - quantity(other, order.by);
    const result = difference || compareNames(one.name, other.name);
    return order.isDescending ? -result : result;
  });
}

function quantity({ sizeBytes = 0, modifiedMs = 0 }: Item, by: Column): number {
  if (by === 'name') return 0;
  return by === 'size' ? sizeBytes : modifiedMs;
}
