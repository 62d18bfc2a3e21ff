import type { IncomingHttpHeaders } from 'node:http';
import { isIP } from 'node:net';
import { type Networks, plainAddress } from '../util/networks.ts';

/**
 * Returns the client's address: the connection's, or behind a trusted proxy the address that the proxy names (`Forwarded`,
 * RFC 7239, or `X-Forwarded-For`). Proxies append to what the client wrote, so the header is read from its end.
 */
export function clientAddress(peer: string, headers: IncomingHttpHeaders, proxies: Networks): string {
  if (!proxies.has(peer)) return peer;
  const lists = [forwardedFor(headers.forwarded), plainList(headers['x-forwarded-for'])].filter(
    (list) => list.length > 0,
  );
  const [address = peer, other = address] = lists.map((list) => lastUntrusted(peer, list, proxies));
  // A proxy sets one of the two headers and may pass the other unchanged from the client, so neither is believed.
  return address === other ? address : peer;
}

/**
 * Returns the hosts that the client asked for, by the headers of a trusted proxy; empty if it sends none. Headers from
 * anywhere else are not to be believed.
 */
export function forwardedHosts(headers: IncomingHttpHeaders): readonly string[] {
  const standard = String(headers.forwarded ?? '').matchAll(/(?:^|[;,\s])host="?([^";,]+)/gi);
  return [...items(String(headers['x-forwarded-host'] ?? '')), ...[...standard].map(([, host = '']) => host)];
}

/** Whether the client speaks https with a trusted proxy, by the headers of that proxy. */
export function isForwardedSecure(headers: IncomingHttpHeaders): boolean {
  const [scheme = /(?:^|[;,\s])proto="?(\w+)/i.exec(String(headers.forwarded ?? ''))?.[1] ?? ''] = items(
    String(headers['x-forwarded-proto'] ?? ''),
  );
  return scheme.toLowerCase() === 'https';
}

/** Returns the last address that is not a trusted proxy's, or the address of the proxy farthest from us. */
function lastUntrusted(peer: string, hops: readonly string[], proxies: Networks): string {
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

/** Removes the port from `192.0.2.1:4711` and `[2001:db8::1]:4711`; returns any other text unchanged. */
function addressIn(text: string): string {
  const node = text.trim();
  return plainAddress(/^\[(.*)\](?::\d+)?$/.exec(node)?.[1] ?? /^([\d.]+):\d+$/.exec(node)?.[1] ?? node);
}
