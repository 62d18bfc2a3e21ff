import { childrenOf, davChild, isDav, textOf, type XmlElement } from '../../src/dav/xml/xml-element.ts';
import { XmlReader } from '../../src/dav/xml/xml-reader.ts';
import type { GatewayAnswer, GatewayClient } from './gateway.ts';

const LIMITS = { sizeBytes: 64 * 1024 * 1024, nodes: 1_000_000 };
/** More pages of one report mean that it never ends. */
const PAGES_MAX = 500;
const PROPS = '<D:prop><D:resourcetype/><D:getetag/></D:prop>';

/** A member of a folder: its entity tag, or `folder`. By its href without a slash at the end. */
export type Tree = ReadonlyMap<string, string>;

export interface SyncReport {
  /** `folder`, the entity tag or `gone` by href, in the order of the rows. */
  readonly rows: readonly (readonly [href: string, state: string])[];
  /** The href of the row with status 507, if there is one. */
  readonly truncatedAt: string | undefined;
  readonly token: string;
}

export interface FollowOptions {
  readonly level?: '1' | 'infinite';
  /** `DAV:nresults`. */
  readonly limit?: number;
  readonly user?: string;
}

/** Sends a sync-collection report with an empty token or a given one. */
export function sendReport(
  client: GatewayClient,
  folder: string,
  token: string,
  { level = 'infinite', limit, user }: FollowOptions = {},
): Promise<GatewayAnswer> {
  const limited = limit === undefined ? '' : `<D:limit><D:nresults>${limit}</D:nresults></D:limit>`;
  const body = `<D:sync-collection xmlns:D="DAV:"><D:sync-token>${token}</D:sync-token>
    <D:sync-level>${level}</D:sync-level>${limited}${PROPS}</D:sync-collection>`;
  const headers = { depth: '0', ...(user !== undefined && { 'x-test-user': user }) };
  return client.send('REPORT', folder, { headers, body: Buffer.from(body) });
}

/** Parses the answer to a report. Throws if it is no multistatus with a token. */
export async function parseReport({ status, body }: GatewayAnswer): Promise<SyncReport> {
  if (status !== 207) throw new Error(`REPORT answered ${status}: ${body}`);
  const root = await rootOf(body);
  const token = davChild(root, 'sync-token');
  if (!token) throw new Error(`no sync-token in ${body}`);
  const responses = childrenOf(root).filter((child) => isDav(child, 'response'));
  const truncated = responses.find((response) => statusOf(response).includes(' 507 '));
  return {
    rows: responses.filter((response) => response !== truncated).map(rowOf),
    truncatedAt: truncated && textOf(child(truncated, 'href')),
    token: textOf(token),
  };
}

/** A client that learns of a folder from sync-collection reports alone. */
export class Follower {
  readonly tree = new Map<string, string>();
  token = '';

  constructor(
    private readonly client: GatewayClient,
    private readonly folder: string,
    private readonly options: FollowOptions = {},
  ) {}

  /** Asks until everything has been reported. Starts again when the token is not valid any more. Returns all rows. */
  async follow(): Promise<readonly (readonly [href: string, state: string])[]> {
    const all: (readonly [string, string])[] = [];
    for (let pages = 1; ; pages++) {
      if (pages > PAGES_MAX)
        throw new Error(`${this.folder} is reported without end: ${all.slice(-9).join(' ')}`);
      const answer = await sendReport(this.client, this.folder, this.token, this.options);
      if (answer.status === 403 && answer.body.includes('valid-sync-token') && this.token !== '') {
        this.token = '';
        this.tree.clear();
        continue;
      }
      const { rows, truncatedAt, token } = await parseReport(answer);
      for (const [href, state] of rows) this.#apply(href, state);
      all.push(...rows);
      this.token = token;
      if (truncatedAt === undefined) return all;
    }
  }

  #apply(href: string, state: string): void {
    const key = keyOf(href);
    if (state !== 'folder')
      for (const each of this.tree.keys()) if (each.startsWith(`${key}/`)) this.tree.delete(each);
    if (state === 'gone') this.tree.delete(key);
    else this.tree.set(key, state);
  }
}

/** Returns what PROPFIND shows below a folder. */
export async function shownTree(
  client: GatewayClient,
  folder: string,
  { level = 'infinite', user }: FollowOptions = {},
): Promise<Tree> {
  const headers = {
    depth: level === '1' ? '1' : 'infinity',
    ...(user !== undefined && { 'x-test-user': user }),
  };
  const body = Buffer.from(`<D:propfind xmlns:D="DAV:">${PROPS}</D:propfind>`);
  const answer = await client.send('PROPFIND', folder, { headers, body });
  if (answer.status !== 207) throw new Error(`PROPFIND answered ${answer.status}: ${answer.body}`);
  const [, ...members] = childrenOf(await rootOf(answer.body)).map(rowOf);
  return new Map(members.map(([href, state]) => [keyOf(href), state]));
}

/** Returns a tree as sorted lines, to be compared. */
export function linesOf(tree: Tree): readonly string[] {
  return [...tree].map(([href, state]) => `${href} ${state}`).sort();
}

function keyOf(href: string): string {
  return href.replace(/\/$/, '');
}

async function rootOf(body: Buffer): Promise<XmlElement> {
  const root = await new XmlReader().read(body, LIMITS);
  if (!root || !isDav(root, 'multistatus')) throw new Error(`no multistatus: ${body}`);
  return root;
}

function rowOf(response: XmlElement): readonly [href: string, state: string] {
  const href = textOf(child(response, 'href'));
  if (statusOf(response).includes(' 404 ')) return [href, 'gone'];
  const prop = child(child(response, 'propstat'), 'prop');
  const type = davChild(prop, 'resourcetype');
  if (type && davChild(type, 'collection')) return [href, 'folder'];
  return [href, textOf(child(prop, 'getetag'))];
}

/** Returns the status of a response without properties; `''` for others. */
function statusOf(response: XmlElement): string {
  const status = davChild(response, 'status');
  return status ? textOf(status) : '';
}

function child(element: XmlElement, name: string): XmlElement {
  const found = davChild(element, name);
  if (!found) throw new Error(`${element.name} has no ${name}`);
  return found;
}
