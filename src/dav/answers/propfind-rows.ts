import type { Entry, Listing } from '../../drive/files.ts';
import type { DeadProperty } from '../../state/properties.ts';
import { type LiveState, NO_LIVE_STATE } from '../properties/live-properties.ts';
import type { PropertySelection } from '../properties/property-selection.ts';
import { encodeSegment } from '../resource-url.ts';
import { escapeText } from '../xml/xml-writer.ts';
import { responseEnd, responseStart, responseXml } from './multistatus.ts';

/** Maximum length of the cached rows, in characters, over all selections. */
const ROWS_LENGTH_MAX = 8 * 1024 * 1024;

/** Dead properties by the id of their entry. */
export type DeadProperties = ReadonlyMap<string, readonly DeadProperty[]>;

const NONE: readonly DeadProperty[] = [];

/** The data that all rows of one answer are rendered from, besides their entries. */
export interface RowContext {
  readonly selection: PropertySelection;
  readonly state: LiveState;
  readonly cache: RowCache;
}

/** Renders the row of one resource, whose href is that of the request. */
export function resourceRow(
  { selection, state }: RowContext,
  href: string,
  entry: Entry,
  dead: DeadProperties,
): string {
  return responseXml(href, selection.propstats(entry, dead.get(entry.id) ?? NONE, state));
}

/** Renders the rows of a folder's members. `href` is the folder's and ends with a slash. */
export function* memberRows(
  { selection, state, cache }: RowContext,
  href: string,
  { children }: Listing,
  dead: DeadProperties,
): Iterable<string> {
  const start = responseStart(href);
  for (const entry of children) {
    const own = dead.get(entry.id);
    if (own || !state.isEmptyFor(entry)) yield start + rowEnd(selection, entry, own ?? NONE, state);
    else yield start + cache.row(selection, entry, () => rowEnd(selection, entry, NONE, NO_LIVE_STATE));
  }
}

/** Renders a row from the entry's name on, which is the same whatever spelling of the folder's path a client uses. */
function rowEnd(
  selection: PropertySelection,
  entry: Entry,
  dead: readonly DeadProperty[],
  state: LiveState,
): string {
  const slash = entry.kind === 'folder' ? '/' : '';
  return escapeText(encodeSegment(entry.name)) + slash + responseEnd(selection.propstats(entry, dead, state));
}

/** Rendered rows. Entries are immutable values, so a row stays valid: nothing here needs to be invalidated. */
export class RowCache {
  #rows = new WeakMap<PropertySelection, WeakMap<Entry, string>>();
  #length = 0;

  /** Returns the row of `entry`, rendered once. */
  row(selection: PropertySelection, entry: Entry, render: () => string): string {
    const rows = this.#rowsOf(selection);
    const known = rows.get(entry);
    if (known !== undefined) return known;
    // V8 keeps a concatenated string as a tree until it is copied; a flat one is sent three times as fast.
    const row = Buffer.from(render()).toString();
    rows.set(entry, row);
    this.#length += row.length;
    // A weak map cannot tell how much of it is still alive: start over.
    if (this.#length > ROWS_LENGTH_MAX) {
      this.#rows = new WeakMap();
      this.#length = 0;
    }
    return row;
  }

  #rowsOf(selection: PropertySelection): WeakMap<Entry, string> {
    const known = this.#rows.get(selection);
    if (known) return known;
    const rows = new WeakMap<Entry, string>();
    this.#rows.set(selection, rows);
    return rows;
  }
}
