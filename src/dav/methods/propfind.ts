import { LRUCache } from 'lru-cache';
import { FileError } from '../../drive/errors.ts';
import type { Entry, FolderEntry, Listing } from '../../drive/files.ts';
import type { BasePath } from '../../util/base-path.ts';
import { nameOf, namesOf } from '../../util/path.ts';
import { memberPieces } from '../answers/member-pieces.ts';
import {
  answerBody,
  answerMultistatus,
  joined,
  only,
  rowsIn,
  sendMultistatus,
} from '../answers/multistatus.ts';
import {
  deadPropertiesOf,
  LOADED_TOGETHER,
  NO_DEAD,
  type RowContext,
  resourceRow,
} from '../answers/propfind-rows.ts';
import { RenderedListings } from '../answers/rendered-listings.ts';
import { clientOf } from '../clients.ts';
import { type Context, entryHere, type Method } from '../context.ts';
import { DavError } from '../errors.ts';
import { NO_LIVE_STATE } from '../properties/live-properties.ts';
import { liveStateOf } from '../properties/live-state.ts';
import { PropertySelection, parsePropfind } from '../properties/property-selection.ts';
import { type Depth, depthOf, prefersMinimal } from '../request-headers.ts';
import { encodeSegment, parseResourceUrl, requestHref } from '../resource-url.ts';
import { readXmlBytes, type XmlLimits } from '../xml/xml-reader.ts';

/** Limits of the body of a PROPFIND. Real ones have under 4 KiB and 30 elements. */
export const PROPFIND_LIMITS: XmlLimits = { sizeBytes: 64 * 1024, nodes: 1_000 };
/** Maximum length of an answer that is sent at once, in bytes: about 20,000 rows. */
const WHOLE_LENGTH = 8 * 1024 * 1024;
/** `WHOLE_LENGTH` for depth infinity: streaming starts early. */
const TREE_WHOLE_LENGTH = 256 * 1024;
/** Maximum number of cached selections. Each client program repeats the same few request bodies. */
const SELECTIONS_MAX = 64;

/** With `noroot` the folder itself is left out, an old form of Microsoft. */
const DEPTHS = ['0', '1', 'infinity', '1,noroot', 'infinity,noroot'] as const;

const NO_BYTES = Buffer.alloc(0);

/** The memory that PROPFIND has of earlier requests. */
interface Memory {
  /** Parsed request bodies, by the body and everything else that changes its meaning. */
  readonly selections: LRUCache<string, PropertySelection>;
  readonly kept: RenderedListings;
}

/**
 * Creates PROPFIND (RFC 4918 §9.1), which loads everything before the first row, so that no row waits. `listingBytesMax`:
 * maximum size of the rendered listings that are kept to be sent again.
 */
export function createPropfind(listingBytesMax: number): Method {
  const selections = new LRUCache<string, PropertySelection>({ max: SELECTIONS_MAX });
  const memory: Memory = { selections, kept: new RenderedListings(listingBytesMax) };
  return (context) => propfind(context, memory);
}

async function propfind(context: Context, memory: Memory): Promise<void> {
  const wanted = depthOf(context.request.headers, DEPTHS, 'infinity');
  const depth = wanted === '1,noroot' ? '1' : wanted === 'infinity,noroot' ? 'infinity' : wanted;
  const selection = await selectionOf(context, memory);
  const { above } = context.exchange;
  if (above !== undefined) return answerAbove(context, above, selection, depth);
  if (depth === 'infinity' && context.drive.historyFolders?.owns(context.path))
    throw infiniteDepth('send Depth 0 or 1: folders of versions and deleted files are listed one by one');
  if (depth !== wanted) return answerMembers(context, memory, selection, depth);
  const listing = depth === '1' && context.hasTrailingSlash ? await listingHere(context) : undefined;
  if (listing) return answerListing(context, memory, selection, listing);
  const entry = await entryHere(context);
  if (!entry) throw new DavError(404, `${context.path} does not exist`);
  if (entry.kind === 'file' || depth === '0') await answerResource(context, selection, entry);
  else if (depth === '1')
    await answerListing(
      context,
      memory,
      selection,
      await context.drive.files.list(context.path, context.exchange.signal),
    );
  else await answerTree(context, memory, selection, entry);
}

/** Answers for the folder `above` the drive, which contains nothing but the next one on the way down. */
async function answerAbove(
  { exchange }: Context,
  above: BasePath,
  selection: PropertySelection,
  depth: Depth,
): Promise<void> {
  if (depth === 'infinity') throw infiniteDepth(`send Depth 0 or 1: the drive is at ${exchange.prefix}/`);
  const [next] = exchange.prefix.slice(above.length + 1).split('/');
  const rows = [above, `${above}/${next}`].map((folder) => {
    const { path } = parseResourceUrl(folder);
    const entry = { kind: 'folder', id: `above ${folder}`, path, name: nameOf(path) } as const;
    return resourceRow({ selection, state: NO_LIVE_STATE }, `${folder}/`, entry, NO_DEAD);
  });
  await answerMultistatus(exchange, depth === '0' ? rows.slice(0, 1) : rows);
}

function infiniteDepth(message: string): DavError {
  return new DavError(403, message, { precondition: 'propfind-finite-depth' });
}

async function selectionOf(
  { exchange, request, xml }: Context,
  { selections }: Memory,
): Promise<PropertySelection> {
  const client = clientOf(request);
  const bytes = exchange.announcedBytes === 0 ? NO_BYTES : await readXmlBytes(exchange, PROPFIND_LIMITS);
  const { brief } = request.headers;
  const isPreferred = prefersMinimal(request.headers);
  const minimal = isPreferred || (brief !== undefined && /^\s*t\s*$/i.test(String(brief)));
  if (isPreferred) exchange.setHeader('Preference-Applied', 'return=minimal');
  const key = `${client.allprop} ${client.reportsQuota} ${minimal} ${bytes.toString('latin1')}`;
  const known = selections.get(key);
  if (known) return known;
  const root = await xml.read(bytes, PROPFIND_LIMITS);
  const selection = new PropertySelection(parsePropfind(root), { client, minimal });
  selections.set(key, selection);
  return selection;
}

async function answerResource(context: Context, selection: PropertySelection, entry: Entry): Promise<void> {
  const state = await liveStateOf(context, selection, { entries: () => [entry], isAlone: true });
  const dead = await deadPropertiesOf(context, selection, [entry]);
  await answerMultistatus(context.exchange, [
    resourceRow({ selection, state }, ownHref(context, entry), entry, dead),
  ]);
}

/**
 * Returns the listing of a folder whose URL ends with a slash; `undefined` if it is none. Asking for the listing first
 * saves a lookup, because the drive learns at the same time whether it is a folder.
 */
async function listingHere({ drive, path, exchange }: Context): Promise<Listing | undefined> {
  try {
    return await drive.files.list(path, exchange.signal);
  } catch (error) {
    if (error instanceof FileError && (error.fault === 'not-found' || error.fault === 'not-a-folder'))
      return undefined;
    throw error;
  }
}

async function answerListing(
  context: Context,
  { kept }: Memory,
  selection: PropertySelection,
  listing: Listing,
): Promise<void> {
  const { drive, exchange } = context;
  const { folder, children } = listing;
  const entries = () => [folder, ...children];
  const [state, version] = await Promise.all([
    liveStateOf(context, selection, { entries, isAlone: children.length === 0 }),
    versionOf(context, selection),
  ]);
  const href = ownHref(context, folder);
  const key = kept.key(drive, selection, href);
  const before = state === NO_LIVE_STATE ? kept.get(key) : undefined;
  const isKnown = before?.shows(listing, version) === true;
  if (isKnown && before.answer) return answerBody(exchange, before.answer);
  const first = isKnown ? [] : children.slice(0, LOADED_TOGETHER);
  const dead = await deadPropertiesOf(context, selection, [folder, ...first]);
  const own = Buffer.from(resourceRow({ selection, state }, href, folder, dead));
  // The first ones were loaded together with those of the folder.
  const deadOf = async (wanted: readonly Entry[]) =>
    wanted[0] === first[0] && wanted.length <= first.length
      ? dead
      : deadPropertiesOf(context, selection, wanted);
  const members = { key, href, listing, version, dead: deadOf };
  const pieces = memberPieces(kept, { selection, state }, members);
  const answer = await sendMultistatus(exchange, withFirst(own, pieces), { wholeLength: WHOLE_LENGTH });
  const rendered = answer && state === NO_LIVE_STATE ? kept.get(key) : undefined;
  if (!answer || !rendered?.shows(listing, version)) return;
  rendered.join(answer, rowsIn(answer).subarray(own.length));
  kept.keep(key, rendered);
}

async function* withFirst(first: Uint8Array, others: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield first;
  yield* others;
}

/** Answers for the members of a folder without the folder itself, as old programs of Microsoft ask. */
async function answerMembers(
  context: Context,
  { kept }: Memory,
  selection: PropertySelection,
  depth: Depth,
): Promise<void> {
  const { drive, exchange, path } = context;
  const entry = await entryHere(context);
  if (!entry) throw new DavError(404, `${path} does not exist`);
  if (entry.kind === 'file') return answerMultistatus(exchange, []);
  const state = await liveStateOf(context, selection, { entries: () => undefined, isAlone: false });
  const { signal } = exchange;
  const listings =
    depth === '1' ? only(await drive.files.list(path, signal)) : drive.files.walk(path, signal);
  const pieces = memberRows(context, kept, { selection, state }, { folder: entry, listings });
  await sendMultistatus(exchange, joined(pieces), { wholeLength: TREE_WHOLE_LENGTH });
}

async function answerTree(
  context: Context,
  { kept }: Memory,
  selection: PropertySelection,
  folder: FolderEntry,
): Promise<void> {
  const state = await liveStateOf(context, selection, { entries: () => undefined, isAlone: false });
  const pieces = treePieces(context, kept, { selection, state }, folder);
  await sendMultistatus(context.exchange, joined(pieces), { wholeLength: TREE_WHOLE_LENGTH });
}

async function* treePieces(
  context: Context,
  kept: RenderedListings,
  rows: RowContext,
  folder: FolderEntry,
): AsyncGenerator<Uint8Array> {
  const dead = await deadPropertiesOf(context, rows.selection, [folder]);
  yield Buffer.from(resourceRow(rows, ownHref(context, folder), folder, dead));
  const listings = context.drive.files.walk(context.path, context.exchange.signal);
  yield* memberRows(context, kept, rows, { folder, listings });
}

/** Yields the rows of the members in listings of `folder` and of folders below it. */
async function* memberRows(
  context: Context,
  kept: RenderedListings,
  rows: RowContext,
  { folder, listings }: { readonly folder: FolderEntry; readonly listings: AsyncIterable<Listing> },
): AsyncGenerator<Uint8Array> {
  const { drive } = context;
  const { selection } = rows;
  const top = ownHref(context, folder);
  const depth = namesOf(context.path).length;
  const version = await versionOf(context, selection);
  for await (const listing of listings) {
    const below = namesOf(listing.folder.path).slice(depth);
    const href = top + below.map((name) => `${encodeSegment(name)}/`).join('');
    const dead = (wanted: readonly Entry[]) => deadPropertiesOf(context, selection, wanted);
    const key = kept.key(drive, selection, href);
    yield* memberPieces(kept, rows, { key, href, listing, version, dead });
  }
}

function ownHref({ exchange, path }: Context, entry: Entry): string {
  return requestHref(exchange, path, entry.kind === 'folder');
}

/** Read before the properties themselves: a change in between makes a kept answer stale, never wrong. */
async function versionOf({ drive }: Context, { needsDead }: PropertySelection): Promise<number | undefined> {
  return needsDead ? drive.state.properties.version() : undefined;
}
