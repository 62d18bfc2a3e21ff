import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import type { Refusal } from './refusal.ts';

/**
 * Refuses a request for a host by a name that is not this machine's own. A web page can have its name lead to this machine
 * (DNS rebinding), and would then use a drive without a login from the browser of whoever looks at the page. It cannot do
 * that with an address, nor with `localhost`; HTTP/1.0 without a name is no browser's.
 */
export function foreignNameRefusal({ headers }: IncomingMessage): Refusal | undefined {
  const host = (headers.host ?? '').trim().toLowerCase();
  const name = host.replace(/:\d*$/, '').replace(/\.$/, '');
  if (host === '' || /^(.+\.)?localhost$/.test(name) || isIP(name.replace(/^\[(.*)\]$/, '$1')) !== 0)
    return undefined;
  return {
    status: 421,
    text:
      'Without a login (--no-auth) davgate answers to localhost and to IP addresses only, as any web page could use it ' +
      'otherwise. Ask for one of these; a proxy should send one of them as Host.',
  };
}
