import type { Exchange } from '../../http/exchange.ts';
import type { Link } from './links.ts';

/** The parts of a shared link's URL that identify the link, and the item inside a linked folder. */
export interface LinkAddress {
  readonly token: string;
  readonly rlkey: string;
  /** Names from the linked folder down; empty for the linked item itself. */
  readonly below: readonly string[];
}

/** Returns the path prefix of links, as proxies or else the service's own URL name it: `''`, or for example `/.davgate`. */
export function webPath({ prefix }: Pick<Exchange, 'prefix'>, webUrl: string): string {
  return prefix || new URL(webUrl).pathname.replace(/\/+$/, '');
}

/**
 * Returns the address of the service relative to a page: `../..` for `/scl/fi/…`. Proxies serve a page under several paths
 * at once, which the service does not know.
 */
export function rootFrom({ path }: Pick<Exchange, 'path'>): string {
  const above = path.split('/').length - 2;
  return above > 0 ? Array.from({ length: above }, () => '..').join('/') : '.';
}

/** Returns the URL of a link: `{webUrl}/scl/fi/TOKEN/NAME?rlkey=KEY&dl=0`, and `/scl/fo/TOKEN/h?…` for a folder. */
export function linkUrl(webUrl: string, link: Link, name: string): string {
  const place =
    link.itemKind === 'file' ? `fi/${link.token}/${encodeURIComponent(name)}` : `fo/${link.token}/h`;
  return `${webUrl}/scl/${place}?rlkey=${link.rlkey}&dl=0`;
}

/**
 * Parses the path and query of a link's URL; `undefined` for any other URL. A folder's URL has a fixed name first (the
 * real service has a hash there), and then the names of an item inside.
 */
export function parseLinkAddress(pathname: string, query: URLSearchParams): LinkAddress | undefined {
  const [kind, token, ...rest] = namesIn(pathname) ?? [];
  const rlkey = query.get('rlkey');
  if ((kind !== 'fi' && kind !== 'fo') || !token || !rlkey) return undefined;
  if (kind === 'fi' && rest.length > 1) return undefined;
  return { token, rlkey, below: kind === 'fo' ? rest.slice(1) : [] };
}

/** Parses a whole URL with any host and prefix: links made under an earlier address of the service stay valid. */
export function linkAddressIn(url: string): LinkAddress | undefined {
  if (!URL.canParse(url)) return undefined;
  const { pathname, searchParams } = new URL(url);
  const start = pathname.indexOf(PREFIX);
  return start < 0 ? undefined : parseLinkAddress(pathname.slice(start), searchParams);
}

const PREFIX = '/scl/';

/** Whether a path belongs to the shared links' pages, even if nothing is there. */
export function isLinkPath(pathname: string): boolean {
  return pathname.startsWith(PREFIX);
}

function namesIn(pathname: string): string[] | undefined {
  if (!isLinkPath(pathname)) return undefined;
  try {
    return pathname.slice(PREFIX.length).split('/').map(decodeURIComponent);
  } catch {
    return undefined;
  }
}
