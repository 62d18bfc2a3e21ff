/** The selected names of a folder, and the name that the keyboard is at. */
export interface Selection {
  readonly names: ReadonlySet<string>;
  /** Where the keyboard is; also one end of the next range. */
  readonly current: string | undefined;
  /** The other end of a range. */
  readonly anchor: string | undefined;
}

export const NOTHING_SELECTED: Selection = { names: new Set(), current: undefined, anchor: undefined };

export interface Keys {
  /** Adds to the selection, or removes from it. */
  readonly toggles: boolean;
  /** Selects everything from the anchor on. */
  readonly extends: boolean;
}

/** Returns the selection after `name` was clicked, or reached by an arrow key. `order` has all names as they are shown. */
export function selected(
  { names, anchor }: Selection,
  order: readonly string[],
  name: string,
  keys: Keys,
): Selection {
  if (keys.extends) {
    const ends = [order.indexOf(anchor ?? name), order.indexOf(name)].sort((one, other) => one - other);
    const range = order.slice(ends[0], (ends[1] ?? 0) + 1);
    return { names: new Set(range), current: name, anchor: anchor ?? name };
  }
  if (!keys.toggles) return { names: new Set([name]), current: name, anchor: name };
  const next = new Set(names);
  if (!next.delete(name)) next.add(name);
  return { names: next, current: name, anchor: name };
}
