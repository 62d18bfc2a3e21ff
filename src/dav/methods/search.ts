import type { Entry } from '../../drive/files.ts';
import type { DeadProperty } from '../../state/properties.ts';
import { LongLoop } from '../../util/long-loop.ts';
import { joined, responseXml, sendMultistatus, statusLine } from '../answers/multistatus.ts';
import { deadPropertiesOf, LOADED_TOGETHER, NO_DEAD, resourceRow } from '../answers/propfind-rows.ts';
import { clientOf } from '../clients.ts';
import { type Context, presentFiles } from '../context.ts';
import { DavError } from '../errors.ts';
import { liveStateOf } from '../properties/live-state.ts';
import { PropertySelection, propertyNamesIn } from '../properties/property-selection.ts';
import { hrefOf, parseResourceUrl } from '../resource-url.ts';
import { type Found, unsupportedSearch } from '../search/comparable.ts';
import { SearchCondition } from '../search/search-condition.ts';
import { SearchOrder, type SortKeys } from '../search/search-order.ts';
import { childrenOf, davChild, isDav, textOf, type XmlElement } from '../xml/xml-element.ts';
import type { XmlLimits } from '../xml/xml-reader.ts';

/** Limits of the request body. */
const BODY_LIMITS: XmlLimits = { sizeBytes: 64 * 1024, nodes: 1_000 };

/** Maximum number of rows in an answer. */
const ROWS_MAX = 10_000;

/** Maximum length of an answer that is sent at once, in bytes. */
const WHOLE_LENGTH = 256 * 1024;

type Depth = '0' | '1' | 'infinity';

/** A search with the grammar `DAV:basicsearch` (RFC 5323 §5). */
interface BasicSearch {
  readonly select: XmlElement;
  readonly scope: { readonly href: string; readonly depth: Depth };
  readonly condition: SearchCondition;
  readonly order: SearchOrder | undefined;
  readonly rowsMax: number | undefined;
}

const NO_PROPERTIES: readonly DeadProperty[] = [];

/**
 * SEARCH (RFC 5323 §2). Looks at everything in the scope, in the cached tree where it can: unlike the service's index, the
 * tree is complete and current.
 */
export async function search(context: Context): Promise<void> {
  const { exchange, xml } = context;
  const wanted = parseSearch(await xml.read(exchange, BODY_LIMITS));
  const scoped: Context = { ...context, path: pathOfScope(context, wanted.scope.href) };
  if (exchange.above !== undefined) throw invalidScope(wanted.scope.href);
  const matches = new Matches(wanted);
  const needsDead = wanted.condition.needsDead || wanted.order?.needsDead;
  const deadOf = (entries: readonly Entry[]) =>
    context.drive.state.properties.of(entries.map(({ id }) => id));
  const loop = new LongLoop();
  for await (const entries of entriesIn(scoped, wanted.scope)) {
    let dead = NO_DEAD;
    for (const [index, entry] of entries.entries()) {
      if (needsDead && index % LOADED_TOGETHER === 0)
        dead = await deadOf(entries.slice(index, index + LOADED_TOGETHER));
      matches.add({ entry, dead: dead.get(entry.id) ?? NO_PROPERTIES });
      if (loop.isDue) await loop.pause();
    }
    exchange.signal.throwIfAborted();
    if (matches.isDone) break;
  }
  await answer(scoped, wanted, matches);
}

function parseSearch(root: XmlElement | undefined): BasicSearch {
  if (root && isDav(root, 'query-schema-discovery'))
    throw new DavError(422, 'davgate does not tell the schema of its searches', {
      precondition: 'search-grammar-discovery-supported',
    });
  if (!root || !isDav(root, 'searchrequest'))
    throw new DavError(400, 'the body of SEARCH must be a DAV:searchrequest element');
  const [grammar] = childrenOf(root);
  if (!grammar) throw new DavError(400, 'DAV:searchrequest must contain the element of a grammar');
  if (!isDav(grammar, 'basicsearch'))
    throw unsupportedSearch(`the grammar ${grammar.name} is not supported; use DAV:basicsearch`);
  const [select, from, where, orderby, limit] = ['select', 'from', 'where', 'orderby', 'limit'].map((name) =>
    davChild(grammar, name),
  );
  const selected = select && childrenOf(select)[0];
  if (!selected || !(isDav(selected, 'prop') || isDav(selected, 'allprop')))
    throw new DavError(400, 'DAV:select must contain DAV:prop or DAV:allprop');
  if (!from) throw new DavError(400, 'DAV:basicsearch must contain DAV:from');
  return {
    select: selected,
    scope: scopeIn(from),
    condition: new SearchCondition(where),
    order: orderby && new SearchOrder(orderby),
    rowsMax: limit && limitIn(limit),
  };
}

function scopeIn(from: XmlElement): BasicSearch['scope'] {
  const [scope, second] = childrenOf(from);
  if (!scope || !isDav(scope, 'scope')) throw new DavError(400, 'DAV:from must contain DAV:scope');
  if (second)
    throw new DavError(422, 'a search has one scope; send one for each', {
      precondition: 'search-multiple-scope-supported',
    });
  const strange = childrenOf(scope).find((child) => !isDav(child, 'href') && !isDav(child, 'depth'));
  if (strange) throw unsupportedSearch(`DAV:scope with ${strange.name} is not supported`);
  const [href, depth] = ['href', 'depth'].map((name) => davChild(scope, name));
  const depthText = depth ? textOf(depth).trim().toLowerCase() : 'infinity';
  if (!href || !(depthText === '0' || depthText === '1' || depthText === 'infinity'))
    throw new DavError(400, 'DAV:scope must contain DAV:href, and DAV:depth with 0, 1 or infinity');
  return { href: textOf(href).trim(), depth: depthText };
}

function limitIn(limit: XmlElement): number {
  const results = davChild(limit, 'nresults');
  const text = results ? textOf(results).trim() : '';
  if (!/^\d{1,9}$/.test(text)) throw new DavError(400, 'DAV:limit must contain DAV:nresults with a number');
  return Number(text);
}

/** Returns the path of a scope, whose href may be relative to the address of the request. */
function pathOfScope({ exchange, path, hasTrailingSlash }: Context, href: string): Context['path'] {
  const isWhole = href.startsWith('/') || /^[a-z][a-z0-9+.-]*:\/\//i.test(href);
  if (isWhole) return parseResourceUrl(href, exchange.prefix).path;
  const base = `http://x${hrefOf(exchange, path, hasTrailingSlash)}`;
  if (!URL.canParse(href, base)) throw new DavError(400, 'the href of DAV:scope is not a URL');
  return parseResourceUrl(new URL(href, base).pathname, exchange.prefix).path;
}

function invalidScope(href: string): DavError {
  return new DavError(409, `the scope ${JSON.stringify(href.slice(0, 200))} does not exist`, {
    precondition: 'search-scope-valid',
  });
}

/** Yields the resources of the scope, folder by folder. */
async function* entriesIn(
  { drive, path, exchange }: Context,
  { href, depth }: BasicSearch['scope'],
): AsyncGenerator<readonly Entry[]> {
  const files = presentFiles(drive);
  const { signal } = exchange;
  const top = files.known(path) ?? (await files.stat(path, signal));
  if (!top) throw invalidScope(href);
  yield [top];
  if (top.kind === 'file' || depth === '0') return;
  if (depth === '1') yield (await files.list(path, signal)).children;
  else for await (const { children } of files.walk(path, signal)) yield children;
}

/** A resource that matches. */
interface Match {
  readonly entry: Entry;
  readonly keys: SortKeys;
}

const NO_KEYS: SortKeys = [];

/** The resources that match, in the wanted order. */
class Matches {
  /** Whether there are more than fit into the answer, and than the client wants. */
  isCut = false;
  #found: Match[] = [];
  readonly #max: number;

  constructor(private readonly wanted: BasicSearch) {
    this.#max = Math.min(wanted.rowsMax ?? ROWS_MAX, ROWS_MAX);
  }

  /** Whether further matches change nothing. */
  get isDone(): boolean {
    const isFull = this.#found.length >= this.#max;
    return !this.wanted.order && isFull && (this.isCut || this.#max === this.wanted.rowsMax);
  }

  add(found: Found): void {
    const { condition, order } = this.wanted;
    if (!condition.matches(found)) return;
    if (!order && this.#found.length >= this.#max) {
      this.isCut = true;
      return;
    }
    this.#found.push({ entry: found.entry, keys: order?.keysOf(found) ?? NO_KEYS });
    if (this.#found.length > 2 * this.#max) this.#cut();
  }

  all(): readonly Entry[] {
    this.#cut();
    return this.#found.map(({ entry }) => entry);
  }

  #cut(): void {
    const { order } = this.wanted;
    if (order) this.#found.sort((one, other) => order.compare(one.keys, other.keys));
    if (this.#found.length <= this.#max) return;
    this.isCut = true;
    this.#found = this.#found.slice(0, this.#max);
  }
}

async function answer(context: Context, { select, rowsMax }: BasicSearch, matches: Matches): Promise<void> {
  const { exchange, request } = context;
  const selection = new PropertySelection(
    isDav(select, 'prop') ? { kind: 'prop', names: propertyNamesIn(select) } : { kind: 'allprop', names: [] },
    { client: clientOf(request), minimal: false },
  );
  const found = matches.all();
  const state = await liveStateOf(context, selection, { entries: () => found, isAlone: false });
  const pieces = async function* () {
    for (let start = 0; start < found.length; start += LOADED_TOGETHER) {
      const entries = found.slice(start, start + LOADED_TOGETHER);
      const dead = await deadPropertiesOf(context, selection, entries);
      const rows = entries.map((entry) =>
        resourceRow({ selection, state }, hrefOf(exchange, entry.path, entry.kind === 'folder'), entry, dead),
      );
      yield Buffer.from(rows.join(''));
    }
    // RFC 5323 §2.3.2: the answer is not complete, and the client has not asked for that.
    if (matches.isCut && (rowsMax === undefined || rowsMax > ROWS_MAX))
      yield Buffer.from(
        responseXml(hrefOf(exchange, context.path, true), `<D:status>${statusLine(507)}</D:status>`),
      );
  };
  await sendMultistatus(exchange, joined(pieces()), { wholeLength: WHOLE_LENGTH });
}
