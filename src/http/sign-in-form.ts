import { pathBelow } from '../util/base-path.ts';
import { readBody } from '../util/whole-body.ts';
import type { Exchange, Refusal } from './exchange.ts';

export const SIGN_IN_PATH = '/.davgate/sign-in';

/** Maximum size of a form with a name and a password, in bytes. */
const FORM_BYTES_MAX = 16 * 1024;

export const BAD_FORM: Refusal = {
  status: 400,
  text: `Send a form (application/x-www-form-urlencoded) of up to ${FORM_BYTES_MAX / 1024} KiB with name and password.`,
};

/**
 * Returns `to` if it is a path of this drive as the browser sees it, else its root. Browsers take `//host` and `/\host` for
 * other hosts.
 */
export function localPath({ prefix }: Exchange, to: string | null): string {
  const base = 'http://davgate';
  const root = `${prefix}/`;
  if (!to?.startsWith('/') || !URL.canParse(to, base)) return root;
  const { origin, pathname, search } = new URL(to, base);
  const below = pathBelow(prefix, pathname);
  const isLocal = origin === base && !pathname.startsWith('//') && below !== undefined && !isOfSignIn(below);
  return isLocal ? pathname + search : root;
}

/** Whether a path is one at which nobody stays. */
function isOfSignIn(path: string): boolean {
  return path === SIGN_IN_PATH || path.startsWith(`${SIGN_IN_PATH}/`);
}

/** Returns the fields of a form; `undefined` for another body or a too long one. */
export async function formOf(exchange: Exchange): Promise<URLSearchParams | undefined> {
  const [type = ''] = (exchange.request.headers['content-type'] ?? '').split(';');
  if (type.trim().toLowerCase() !== 'application/x-www-form-urlencoded') return undefined;
  const body = await readBody(exchange.body(), FORM_BYTES_MAX);
  return body && new URLSearchParams(body.toString());
}

/** Whether a form comes from a page of this gateway: another site must not sign its visitors in under its own name. */
export function isFromOwnPage({ request: { headers }, forwardedHosts = [] }: Exchange): boolean {
  const { 'sec-fetch-site': site, origin, host } = headers;
  if (site !== undefined) return site === 'same-origin';
  if (origin === undefined) return true;
  const from = URL.canParse(origin) ? new URL(origin).host : undefined;
  return from !== undefined && [host, ...forwardedHosts].some((own) => own?.toLowerCase() === from);
}
