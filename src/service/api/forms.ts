import type { Exchange } from '../../http/exchange.ts';
import type { ServiceDeps } from '../deps.ts';

/** The fields of a form that a request brings; `undefined` if it is longer than `maxBytes`. */
export async function formOf(exchange: Exchange, maxBytes: number): Promise<URLSearchParams | undefined> {
  const chunks: Uint8Array[] = [];
  let sizeBytes = 0;
  for await (const chunk of exchange.body()) {
    sizeBytes += chunk.length;
    if (sizeBytes > maxBytes) return undefined;
    chunks.push(chunk);
  }
  return new URLSearchParams(Buffer.concat(chunks).toString('utf8'));
}

/** The values of the cookies of this name that a browser shows; several where it has them of several paths. */
export function cookiesNamed({ request }: Exchange, name: string): readonly string[] {
  const cookies = request.headers.cookie?.split(/;[ \t]*/) ?? [];
  return cookies.flatMap((cookie) => (cookie.startsWith(`${name}=`) ? [cookie.slice(name.length + 1)] : []));
}

/**
 * The header that makes a browser show a secret again, to the pages at `path` alone and until it is closed. No script
 * can read it, and other sites' pages may lead to ours, but their forms do not bring it.
 */
export function setCookie(
  { webUrl }: ServiceDeps,
  { name, value, path }: { readonly name: string; readonly value: string; readonly path: string },
): Readonly<Record<string, string>> {
  const secure = webUrl().startsWith('https:') ? '; Secure' : '';
  return { 'set-cookie': `${name}=${value}; Path=${path}; HttpOnly; SameSite=Lax${secure}` };
}
