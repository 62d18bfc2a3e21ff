import type { IncomingHttpHeaders } from 'node:http';
import { isIP } from 'node:net';
import { type Networks, plainAddress } from '../util/networks.ts';

/**
 * The address of the client: that of the connection, or where a trusted proxy has that, the one it was asked from
 * (`Forwarded`, RFC 7239, or `X-Forwarded-For`). Proxies append to what a client wrote there, so it is read from its end.
 */
export function clientAddress(peer: string, headers: IncomingHttpHeaders, proxies: Networks): string {
  if (!proxies.has(peer)) return peer;
  const lists = [forwardedFor(headers.forwarded), plainList(headers['x-forwarded-for'])].filter(
    (list) => list.length > 0,
  );
  const [address = peer, other = address] = lists.map((list) => firstStranger(peer, list, proxies));
  // A proxy sets one of the fields, and may let the other pass as the client wrote it: nobody knows which is true.
  return address === other ? address : peer;
}

/**
 * The hosts that the client asked for, as a trusted proxy says: none where that does not say. `undefined` where the
 * request comes from no trusted proxy: what it says of itself counts for nothing.
 */
export function forwardedHosts(
  peer: string,
  headers: IncomingHttpHeaders,
  proxies: Networks,
): readonly string[] | undefined {
  if (!proxies.has(peer)) return undefined;
  const standard = String(headers.forwarded ?? '').matchAll(/(?:^|[;,\s])host="?([^";,]+)/gi);
  return [...items(String(headers['x-forwarded-host'] ?? '')), ...[...standard].map(([, host = '']) => host)];
}

/** The last address that is no trusted proxy's; that of the last proxy where no address follows. */
function firstStranger(peer: string, hops: readonly string[], proxies: Networks): string {
  let address = peer;
  for (const hop of hops.toReversed()) {
    if (!proxies.has(address) || isIP(hop) === 0) break;
    address = hop;
  }
  return address;
}

function forwardedFor(header: string | undefined): readonly string[] {
  return items(header).map((element) => {
    const value = /(?:^|;)\s*for\s*=\s*("[^"]*"|[^;]*)/i.exec(element)?.[1] ?? '';
    return addressIn(value.replaceAll('"', ''));
  });
}

function plainList(header: string | string[] | undefined): readonly string[] {
  return items(String(header ?? '')).map(addressIn);
}

function items(header = ''): readonly string[] {
  return header
    .split(',')
    .map((item) => item.trim())
    .filter(Boolean);
}

/** `192.0.2.1:4711` and `[2001:db8::1]:4711` without the port; else as it stands. */
function addressIn(text: string): string {
  const node = text.trim();
  return plainAddress(/^\[(.*)\](?::\d+)?$/.exec(node)?.[1] ?? /^([\d.]+):\d+$/.exec(node)?.[1] ?? node);
}
