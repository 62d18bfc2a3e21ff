import { LRUCache } from 'lru-cache';
import { FileError } from '../../drive/errors.ts';
import type { Entry, FolderEntry, Listing } from '../../drive/files.ts';
import type { DeadProperty } from '../../state/properties.ts';
import { namesOf } from '../../util/path.ts';
import {
  answerMultistatus,
  responseEnd,
  responseStart,
  responseXml,
  sendMultistatus,
} from '../answers/multistatus.ts';
import { MultistatusCache } from '../answers/multistatus-cache.ts';
import { DavError } from '../errors.ts';
import { depthOf } from '../headers.ts';
import { encodeSegment } from '../href.ts';
import type { Context } from '../method.ts';
import { type Facts, NO_FACTS } from '../properties/live.ts';
import { factsOf } from '../properties/propfind-facts.ts';
import { propertyRequestOf } from '../properties/request.ts';
import { PropertySet } from '../properties/set.ts';
import { requestHref } from '../request-href.ts';
import { readXmlBytes, type XmlLimits } from '../xml/read.ts';
import { escapeText } from '../xml/write.ts';

/** Real requests have under 4 KiB and 30 elements. */
const LIMITS: XmlLimits = { sizeBytes: 64 * 1024, nodes: 1_000 };
/** An answer of up to this many characters is made in one piece and kept: some 15,000 rows. */
const WHOLE_LENGTH = 8 * 1024 * 1024;
/** With depth infinity each client asks for another tree: little is held. */
const WALK_WHOLE_LENGTH = 256 * 1024;
/** Programs ask in few ways, and each of them in the same few again and again. */
const PROPERTY_SETS_MAX = 64;

const propertySets = new LRUCache<string, PropertySet>({ max: PROPERTY_SETS_MAX });
const cache = new MultistatusCache();

const NO_DEAD: ReadonlyMap<string, readonly DeadProperty[]> = new Map();
const NO_BYTES = Buffer.alloc(0);
const NONE: readonly DeadProperty[] = [];

/** RFC 4918 §9.1. Once the listing is there, no row waits for anything. */
export async function propfind(context: Context): Promise<void> {
  const depth = depthOf(context.request.headers, ['0', '1', 'infinity'], 'infinity');
  const set = await propertySetOf(context);
  const listing = depth === '1' && context.namesCollection ? await listingAt(context) : undefined;
  if (listing) return answerListing(context, set, listing);
  const entry = await context.drive.files.stat(context.path, context.signal);
  if (!entry) throw new DavError(404, `there is nothing at ${context.path}`);
  if (entry.kind === 'file' || depth === '0') await answerOne(context, set, entry);
  else if (depth === '1')
    await answerListing(context, set, await context.drive.files.list(context.path, context.signal));
  else await answerTree(context, set, entry);
}

async function propertySetOf(context: Context): Promise<PropertySet> {
  const { request, response, client, body } = context;
  const bytes = body.announcedBytes === 0 ? NO_BYTES : await readXmlBytes(body, LIMITS);
  const prefers = /(^|,)\s*return\s*=\s*"?minimal"?\s*([,;]|$)/i.test(
    String(request.headers['prefer'] ?? ''),
  );
  const minimal = prefers || /^\s*t\s*$/i.test(String(request.headers['brief'] ?? ''));
  if (prefers) response.setHeader('Preference-Applied', 'return=minimal');
  const key = `${client.allprop} ${client.reportsQuota} ${minimal} ${bytes.toString('latin1')}`;
  const known = propertySets.get(key);
  if (known) return known;
  const set = new PropertySet(propertyRequestOf(await context.xml.read(bytes, LIMITS)), { client, minimal });
  propertySets.set(key, set);
  return set;
}

async function answerOne(context: Context, set: PropertySet, entry: Entry): Promise<void> {
  const facts = await factsOf(context, set, [entry]);
  const dead = await deadOf(context, set, [entry]);
  const row = ownRow(context, set, entry, dead, facts);
  await sendMultistatus(context.response, [[row]], { wholeLength: WHOLE_LENGTH, signal: context.signal });
}

/**
 * What is in the folder that a client names with a slash at the end: asked for first, since the drive can find out at
 * the same time whether it is one. `undefined`: it is none.
 */
async function listingAt({ drive, path, signal }: Context): Promise<Listing | undefined> {
  try {
    return await drive.files.list(path, signal);
  } catch (error) {
    if (error instanceof FileError && (error.fault === 'not-found' || error.fault === 'not-a-folder'))
      return undefined;
    throw error;
  }
}

async function answerListing(context: Context, set: PropertySet, listing: Listing): Promise<void> {
  const { drive, response, signal } = context;
  const facts = await factsOf(context, set, [listing.folder, ...listing.children]);
  // Asked for before the properties themselves: a change in between only makes the kept answer look old.
  const version = set.needsDead ? await drive.state.properties.version() : undefined;
  const href = ownHref(context, listing.folder);
  const key = cache.key(listing, set, href, version);
  const isPlain = facts === NO_FACTS;
  const known = isPlain ? cache.answer(key) : undefined;
  if (known) return answerMultistatus(response, known);
  const dead = await deadOf(context, set, [listing.folder, ...listing.children]);
  const rows = [
    [ownRow(context, set, listing.folder, dead, facts)],
    childRows(set, href, listing, dead, facts),
  ];
  const body = await sendMultistatus(response, rows, { wholeLength: WHOLE_LENGTH, signal });
  if (body && isPlain) cache.keepAnswer(key, body);
}

async function answerTree(context: Context, set: PropertySet, folder: FolderEntry): Promise<void> {
  const { response, signal } = context;
  const facts = await factsOf(context, set, undefined);
  const groups = treeRows(context, set, folder, facts);
  await sendMultistatus(response, groups, { wholeLength: WALK_WHOLE_LENGTH, signal });
}

async function* treeRows(
  context: Context,
  set: PropertySet,
  folder: FolderEntry,
  facts: Facts,
): AsyncIterable<Iterable<string>> {
  const top = ownHref(context, folder);
  const depth = namesOf(context.path).length;
  yield [ownRow(context, set, folder, await deadOf(context, set, [folder]), facts)];
  for await (const listing of context.drive.files.walk(context.path, context.signal)) {
    const below = namesOf(listing.folder.path).slice(depth);
    const href = top + below.map((name) => `${encodeSegment(name)}/`).join('');
    yield childRows(set, href, listing, await deadOf(context, set, listing.children), facts);
  }
}

/** `href` is the folder's and ends with a slash. */
function* childRows(
  set: PropertySet,
  href: string,
  { children }: Listing,
  dead: ReadonlyMap<string, readonly DeadProperty[]>,
  facts: Facts,
): Iterable<string> {
  const start = responseStart(href);
  for (const entry of children) {
    const own = dead.get(entry.id);
    if (own || !facts.isPlain(entry)) yield start + rowEnd(set, entry, own ?? NONE, facts);
    else yield start + cache.row(set, entry, () => rowEnd(set, entry, NONE, NO_FACTS));
  }
}

/** A row from the entry's name on: what is before that is where the client says the folder is. */
function rowEnd(set: PropertySet, entry: Entry, dead: readonly DeadProperty[], facts: Facts): string {
  const slash = entry.kind === 'folder' ? '/' : '';
  return escapeText(encodeSegment(entry.name)) + slash + responseEnd(set.propstats(entry, dead, facts));
}

/** The row of what the request names. */
function ownRow(
  context: Context,
  set: PropertySet,
  entry: Entry,
  dead: ReadonlyMap<string, readonly DeadProperty[]>,
  facts: Facts,
): string {
  return responseXml(ownHref(context, entry), set.propstats(entry, dead.get(entry.id) ?? NONE, facts));
}

function ownHref({ request, path }: Context, entry: Entry): string {
  return requestHref(request.url ?? '', path, entry.kind === 'folder');
}

async function deadOf(
  { drive }: Context,
  set: PropertySet,
  entries: readonly Entry[],
): Promise<ReadonlyMap<string, readonly DeadProperty[]>> {
  return set.needsDead ? drive.state.properties.of(entries.map((entry) => entry.id)) : NO_DEAD;
}
