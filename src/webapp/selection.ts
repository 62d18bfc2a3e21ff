/** The paths of the selected items, and the one that the keyboard is at. */
export interface Selection {
  readonly paths: ReadonlySet<string>;
  /** Where the keyboard is; also one end of the next range. */
  readonly current: string | undefined;
  /** The other end of a range. */
  readonly anchor: string | undefined;
}

export const NOTHING_SELECTED: Selection = { paths: new Set(), current: undefined, anchor: undefined };

export interface Keys {
  /** Adds to the selection, or removes from it. */
  readonly toggles: boolean;
  /** Selects everything from the anchor on. */
  readonly extends: boolean;
}

/** Returns the selection after `path` was clicked, or reached by an arrow key. `order` has all paths as they are shown. */
export function selected(
  { paths, anchor }: Selection,
  order: readonly string[],
  path: string,
  keys: Keys,
): Selection {
  if (keys.extends) {
    const ends = [order.indexOf(anchor ?? path), order.indexOf(path)].sort((one, other) => one - other);
    const range = order.slice(ends[0], (ends[1] ?? 0) + 1);
    return { paths: new Set(range), current: path, anchor: anchor ?? path };
  }
  if (!keys.toggles) return { paths: new Set([path]), current: path, anchor: path };
  const next = new Set(paths);
  if (!next.delete(path)) next.add(path);
  return { paths: next, current: path, anchor: path };
}
