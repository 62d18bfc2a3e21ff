import { FileError } from '../../drive/errors.ts';
import type { Entry, FolderEntry, Listing } from '../../drive/files.ts';
import type { DeadProperty } from '../../state/properties.ts';
import { namesOf } from '../../util/path.ts';
import {
  answerMultistatusBody,
  responseEnd,
  responseStart,
  responseXml,
  sendMultistatus,
} from '../answers/multistatus.ts';
import type { PropfindCache } from '../answers/propfind-cache.ts';
import { clientOf } from '../clients.ts';
import type { Context } from '../context.ts';
import { DavError } from '../errors.ts';
import { type LiveState, NO_LIVE_STATE } from '../properties/live-properties.ts';
import { loadLiveState } from '../properties/live-state.ts';
import { PropertySelection, parsePropfind } from '../properties/property-selection.ts';
import { announcedBytes, depthOf } from '../request.ts';
import { encodeSegment, requestHref } from '../resource-url.ts';
import { readXmlBytes, type XmlLimits } from '../xml/xml-reader.ts';
import { escapeText } from '../xml/xml-writer.ts';

/** Limits of the request body. Real ones have under 4 KiB and 30 elements. */
const BODY_LIMITS: XmlLimits = { sizeBytes: 64 * 1024, nodes: 1_000 };
/** Maximum length of an answer that is sent at once and cached, in characters: about 15,000 rows. */
const WHOLE_LENGTH = 8 * 1024 * 1024;
/** `WHOLE_LENGTH` for depth infinity, whose answers are not cached: streaming starts early. */
const TREE_WHOLE_LENGTH = 256 * 1024;

const NO_BYTES = Buffer.alloc(0);

/** Dead properties by the id of their entry. */
type DeadProperties = ReadonlyMap<string, readonly DeadProperty[]>;

const NO_DEAD: DeadProperties = new Map();
const NONE: readonly DeadProperty[] = [];

/** The data that all rows of one answer are rendered from, besides their entries. */
interface RowContext {
  readonly selection: PropertySelection;
  readonly state: LiveState;
  readonly cache: PropfindCache;
}

/** PROPFIND (RFC 4918 §9.1). Loads everything before the first row, so that no row waits. */
export async function propfind(context: Context): Promise<void> {
  const depth = depthOf(context.request.headers, ['0', '1', 'infinity'], 'infinity');
  const selection = await selectionOf(context);
  const listing = depth === '1' && context.hasTrailingSlash ? await listingHere(context) : undefined;
  if (listing) return answerListing(context, selection, listing);
  const entry = await context.drive.files.stat(context.path, context.signal);
  if (!entry) throw new DavError(404, `${context.path} does not exist`);
  if (entry.kind === 'file' || depth === '0') await answerResource(context, selection, entry);
  else if (depth === '1')
    await answerListing(context, selection, await context.drive.files.list(context.path, context.signal));
  else await answerTree(context, selection, entry);
}

async function selectionOf(context: Context): Promise<PropertySelection> {
  const { exchange, request, xml, propfindCache } = context;
  const client = clientOf(request);
  const bytes = announcedBytes(request) === 0 ? NO_BYTES : await readXmlBytes(exchange.body(), BODY_LIMITS);
  const prefersMinimal = /(^|,)\s*return\s*=\s*"?minimal"?\s*([,;]|$)/i.test(
    String(request.headers['prefer'] ?? ''),
  );
  const minimal = prefersMinimal || /^\s*t\s*$/i.test(String(request.headers['brief'] ?? ''));
  if (prefersMinimal) exchange.response.setHeader('Preference-Applied', 'return=minimal');
  const key = `${client.allprop} ${client.reportsQuota} ${minimal} ${bytes.toString('latin1')}`;
  return propfindCache.selection(key, async () => {
    const root = await xml.read(bytes, BODY_LIMITS);
    return new PropertySelection(parsePropfind(root), { client, minimal });
  });
}

async function answerResource(context: Context, selection: PropertySelection, entry: Entry): Promise<void> {
  const state = await loadLiveState(context, selection, [entry]);
  const dead = await deadPropertiesOf(context, selection, [entry]);
  const row = ownRow(context, selection, entry, dead, state);
  await sendMultistatus(context.exchange, [[row]], { wholeLength: WHOLE_LENGTH });
}

/**
 * Returns the listing of a folder whose URL ends with a slash; `undefined` if it is none. Asking for the listing first
 * saves a lookup, because the drive learns at the same time whether it is a folder.
 */
async function listingHere({ drive, path, signal }: Context): Promise<Listing | undefined> {
  try {
    return await drive.files.list(path, signal);
  } catch (error) {
    if (error instanceof FileError && (error.fault === 'not-found' || error.fault === 'not-a-folder'))
      return undefined;
    throw error;
  }
}

async function answerListing(
  context: Context,
  selection: PropertySelection,
  listing: Listing,
): Promise<void> {
  const { drive, exchange, propfindCache: cache } = context;
  const state = await loadLiveState(context, selection, [listing.folder, ...listing.children]);
  // Read before the properties themselves: a change in between makes the cached answer stale, never wrong.
  const version = selection.needsDead ? await drive.state.properties.version() : undefined;
  const href = ownHref(context, listing.folder);
  const key = cache.answerKey(listing, selection, href, version);
  const isCacheable = state === NO_LIVE_STATE;
  const cached = isCacheable ? cache.answer(key) : undefined;
  if (cached) return answerMultistatusBody(exchange, cached);
  const dead = await deadPropertiesOf(context, selection, [listing.folder, ...listing.children]);
  const rows = [
    [ownRow(context, selection, listing.folder, dead, state)],
    childRows({ selection, state, cache }, href, listing, dead),
  ];
  const body = await sendMultistatus(exchange, rows, { wholeLength: WHOLE_LENGTH });
  if (body && isCacheable) cache.keepAnswer(key, body);
}

async function answerTree(
  context: Context,
  selection: PropertySelection,
  folder: FolderEntry,
): Promise<void> {
  const state = await loadLiveState(context, selection, undefined);
  const groups = treeRows(context, { selection, state, cache: context.propfindCache }, folder);
  await sendMultistatus(context.exchange, groups, { wholeLength: TREE_WHOLE_LENGTH });
}

async function* treeRows(
  context: Context,
  rows: RowContext,
  folder: FolderEntry,
): AsyncIterable<Iterable<string>> {
  const { selection, state } = rows;
  const top = ownHref(context, folder);
  const depth = namesOf(context.path).length;
  const dead = await deadPropertiesOf(context, selection, [folder]);
  yield [ownRow(context, selection, folder, dead, state)];
  for await (const listing of context.drive.files.walk(context.path, context.signal)) {
    const below = namesOf(listing.folder.path).slice(depth);
    const href = top + below.map((name) => `${encodeSegment(name)}/`).join('');
    yield childRows(rows, href, listing, await deadPropertiesOf(context, selection, listing.children));
  }
}

/** Renders the rows of a folder's members. `href` is the folder's and ends with a slash. */
function* childRows(
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

/** Renders the row of the resource at the request's path. */
function ownRow(
  context: Context,
  selection: PropertySelection,
  entry: Entry,
  dead: DeadProperties,
  state: LiveState,
): string {
  const propstats = selection.propstats(entry, dead.get(entry.id) ?? NONE, state);
  return responseXml(ownHref(context, entry), propstats);
}

function ownHref({ request, path }: Context, entry: Entry): string {
  return requestHref(request.url ?? '', path, entry.kind === 'folder');
}

async function deadPropertiesOf(
  { drive }: Context,
  selection: PropertySelection,
  entries: readonly Entry[],
): Promise<DeadProperties> {
  return selection.needsDead ? drive.state.properties.of(entries.map((entry) => entry.id)) : NO_DEAD;
}
