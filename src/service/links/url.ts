import type { Link } from './links.ts';

/** The parts of a shared link's address that say which link, and which item below a linked folder. */
export interface LinkAddress {
  readonly token: string;
  readonly rlkey: string;
  /** Names below the linked folder, from it down; none for the linked item itself. */
  readonly below: readonly string[];
}

/** The path below which links, their pages and previews stand: `''`, or as in `/.davgate`. */
export function webPath(webUrl: string): string {
  return new URL(webUrl).pathname.replace(/\/+$/, '');
}

/** `{webUrl}/scl/fi/TOKEN/NAME?rlkey=KEY&dl=0`, and `/scl/fo/TOKEN/h?…` for a folder. */
export function linkUrl(webUrl: string, link: Link, name: string): string {
  const place =
    link.itemKind === 'file' ? `fi/${link.token}/${encodeURIComponent(name)}` : `fo/${link.token}/h`;
  return `${webUrl}/scl/${place}?rlkey=${link.rlkey}&dl=0`;
}

/**
 * Reads the path and query of a link's address; `undefined` if it is not one. In a folder's address a
 * fixed name stands first (the real service has a hash there), and what follows names an item inside.
 */
export function parseLinkAddress(pathname: string, query: URLSearchParams): LinkAddress | undefined {
  const [kind, token, ...rest] = namesIn(pathname) ?? [];
  const rlkey = query.get('rlkey');
  if ((kind !== 'fi' && kind !== 'fo') || !token || !rlkey) return undefined;
  if (kind === 'fi' && rest.length > 1) return undefined;
  return { token, rlkey, below: kind === 'fo' ? rest.slice(1) : [] };
}

/**
 * The same of a whole address, whatever host and folder it names: links made under an older address of the service stay
 * good.
 */
export function linkAddressIn(url: string): LinkAddress | undefined {
  if (!URL.canParse(url)) return undefined;
  const { pathname, searchParams } = new URL(url);
  const start = pathname.indexOf(PREFIX);
  return start < 0 ? undefined : parseLinkAddress(pathname.slice(start), searchParams);
}

const PREFIX = '/scl/';

/** Whether a path is for the shared links' pages to answer, even if only to say that nothing is there. */
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
