import type { Entry } from '../../drive/files.ts';
import type { DeadProperty } from '../../state/properties.ts';
import { clientOf } from '../clients.ts';
import type { Context } from '../context.ts';
import { statusOf } from '../failures.ts';
import { UnreadChecksums } from '../properties/checksums.ts';
import { type LiveState, NO_LIVE_STATE } from '../properties/live-properties.ts';
import type { PropertySelection } from '../properties/property-selection.ts';
import { encodeSegment } from '../resource-url.ts';
import { escapeText } from '../xml/xml-writer.ts';
import { responseEnd, responseStart, responseXml } from './multistatus.ts';

/** Dead properties by the id of their entry. */
export type DeadProperties = ReadonlyMap<string, readonly DeadProperty[]>;

export const NO_DEAD: DeadProperties = new Map();

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

/** Number of resources whose dead properties are loaded together: those of a whole folder may not fit into memory. */
export const LOADED_TOGETHER = 500;

/** Renders the rows of one folder's members. */
export class MemberRows {
  /** Whether checksums of a member could not be computed: the next request tries again. */
  lacksChecksums = false;
  readonly #start: string;
  #dead = NO_DEAD;
  /** Indexes of the members whose dead properties are here. */
  #covered = { from: 0, to: 0 };

  /** `href` is the folder's and ends with a slash. */
  constructor(
    private readonly context: RowContext,
    href: string,
    private readonly children: readonly Entry[],
    private readonly load: (entries: readonly Entry[]) => Promise<DeadProperties>,
  ) {
    this.#start = responseStart(href);
  }

  covers(index: number): boolean {
    return this.#covered.from <= index && index < this.#covered.to;
  }

  /** Must be called before members from `from` on are rendered, up to `to` at least. Only they can be, then. */
  async cover(from: number, to: number): Promise<void> {
    if (this.covers(from) && this.covers(to - 1)) return;
    const end = Math.min(Math.max(to, from + LOADED_TOGETHER), this.children.length);
    this.#dead = NO_DEAD;
    this.#dead = await this.load(this.children.slice(from, end));
    this.#covered = { from, to: end };
    this.lacksChecksums ||= lacksChecksums(this.#dead);
  }

  /** Whether the row of `entry` depends on nothing but the entry. */
  isPlain(entry: Entry): boolean {
    const { state } = this.context;
    return (state === NO_LIVE_STATE || state.isEmptyFor(entry)) && !this.#dead.has(entry.id);
  }

  row(entry: Entry): string {
    const { selection, state } = this.context;
    const slash = entry.kind === 'folder' ? '/' : '';
    const propstats = selection.propstats(entry, this.#dead.get(entry.id) ?? NONE, state);
    return this.#start + escapeText(encodeSegment(entry.name)) + slash + responseEnd(propstats);
  }
}

/** Returns the dead properties that the rows of `entries` show. Computes checksums that the request names, if it may. */
export async function deadPropertiesOf(
  context: Context,
  { needsDead, namesChecksums }: PropertySelection,
  entries: readonly Entry[],
): Promise<DeadProperties> {
  if (!needsDead) return NO_DEAD;
  const dead = await context.drive.state.properties.of(entries.map((entry) => entry.id));
  if (!namesChecksums) return dead;
  const client = clientOf(context.request);
  return context.checksums.completed(context, entries, dead, (error) => statusOf(error, client));
}

function lacksChecksums(dead: DeadProperties): boolean {
  return [...dead.values()].some((properties) => properties.some((one) => one instanceof UnreadChecksums));
}
