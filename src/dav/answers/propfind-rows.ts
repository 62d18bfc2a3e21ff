import type { Entry } from '../../drive/files.ts';
import type { DeadProperty } from '../../state/properties.ts';
import { type LiveState, NO_LIVE_STATE } from '../properties/live-properties.ts';
import type { PropertySelection } from '../properties/property-selection.ts';
import { encodeSegment } from '../request.ts';
import { escapeText } from '../xml/xml-writer.ts';
import { responseEnd, responseStart, responseXml } from './multistatus.ts';

/** Dead properties by the id of their entry. */
export type DeadProperties = ReadonlyMap<string, readonly DeadProperty[]>;

const NONE: readonly DeadProperty[] = [];

/** The data that all rows of one answer are rendered from, besides their entries. */
export interface RowContext {
  readonly selection: PropertySelection;
  readonly state: LiveState;
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

/** Renders the rows of one folder's members. */
export class MemberRows {
  readonly #start: string;

  /** `href` is the folder's and ends with a slash. */
  constructor(
    private readonly context: RowContext,
    href: string,
    private readonly dead: DeadProperties,
  ) {
    this.#start = responseStart(href);
  }

  /** Whether the row of `entry` depends on nothing but the entry. */
  isPlain(entry: Entry): boolean {
    const { state } = this.context;
    return (state === NO_LIVE_STATE || state.isEmptyFor(entry)) && !this.dead.has(entry.id);
  }

  row(entry: Entry): string {
    const { selection, state } = this.context;
    const slash = entry.kind === 'folder' ? '/' : '';
    const propstats = selection.propstats(entry, this.dead.get(entry.id) ?? NONE, state);
    return this.#start + escapeText(encodeSegment(entry.name)) + slash + responseEnd(propstats);
  }
}
