import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';

/**
 * Whether a request calls this machine by a name that is not its own: `localhost`, an IP address, or one of `ownNames`. A
 * web page can have its name lead to this machine (DNS rebinding), and would then read from the browser of its visitor
 * what needs no login. HTTP/1.0 without a name is no browser's.
 */
export function hasForeignName({ headers }: IncomingMessage, ownNames: readonly string[]): boolean {
  const host = (headers.host ?? '').trim().toLowerCase();
  const name = host.replace(/:\d*$/, '').replace(/\.$/, '');
  if (host === '' || /^(.+\.)?localhost$/.test(name) || ownNames.includes(name)) return false;
  return isIP(name.replace(/^\[(.*)\]$/, '$1')) === 0;
}
