import type { Exchange } from '../../http/exchange.ts';
import { readBody } from '../../util/whole-body.ts';
import type { ServiceDeps } from '../deps.ts';

/** Returns the fields of a form in a request's body; `undefined` if it is longer than `bytesMax`. */
export async function formOf(exchange: Exchange, bytesMax: number): Promise<URLSearchParams | undefined> {
  const body = await readBody(exchange.body(), bytesMax);
  return body && new URLSearchParams(body.toString());
}

/** Returns the values of all cookies with this name: a browser sends several when it has them for several paths. */
export function cookiesNamed({ request }: Exchange, name: string): readonly string[] {
  const cookies = request.headers.cookie?.split(/;[ \t]*/) ?? [];
  return cookies.flatMap((cookie) => (cookie.startsWith(`${name}=`) ? [cookie.slice(name.length + 1)] : []));
}

/**
 * Returns the header for a session cookie that a browser sends only to the pages at `path`, by default those in the folder
 * of the page that sets it. Scripts cannot read it; links from other sites carry it, but forms of other sites do not.
 */
export function setCookie(
  { isSecure }: Exchange,
  { webUrl }: ServiceDeps,
  { name, value, path }: { readonly name: string; readonly value: string; readonly path?: string },
): Readonly<Record<string, string>> {
  const secure = isSecure || webUrl().startsWith('https:') ? '; Secure' : '';
  const place = path === undefined ? '' : `; Path=${path}`;
  return { 'set-cookie': `${name}=${value}${place}; HttpOnly; SameSite=Lax${secure}` };
}
