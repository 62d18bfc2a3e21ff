import type { IncomingHttpHeaders } from 'node:http';
import { isIP } from 'node:net';
import { type BasePath, parseBasePath } from '../util/base-path.ts';
import { type Networks, plainAddress } from '../util/networks.ts';

/** The request as the client sent it to the outermost proxy. */
export interface Forwarded {
  /** The client's address, without a port. */
  readonly address: string;
  /** The hosts that the client asked for, with their ports; `undefined` without a trusted proxy, empty if it names none. */
  readonly hosts: readonly string[] | undefined;
  /** Whether the client used https. */
  readonly isSecure: boolean;
  /** The path that the proxies took off the request; `undefined` if it is malformed. */
  readonly prefix: BasePath | undefined;
}

/**
 * Reads the headers that a trusted proxy adds: `Forwarded` (RFC 7239) and `X-Forwarded-*`. Call it only for a request from
 * such a proxy, because anybody can send them.
 */
export function forwardedOf(peer: string, headers: IncomingHttpHeaders, proxies: Networks): Forwarded {
  const hops = parseForwarded(headers.forwarded ?? '');
  const valuesOf = (name: string) => hops.flatMap((hop) => hop.get(name) ?? []);
  const [scheme = ''] = [...items(headers['x-forwarded-proto']), ...valuesOf('proto')];
  return {
    address: clientAddress(peer, [valuesOf('for'), items(headers['x-forwarded-for'])], proxies),
    hosts: [...items(headers['x-forwarded-host']), ...valuesOf('host')],
    isSecure: scheme.toLowerCase() === 'https',
    prefix: prefixOf(items(headers['x-forwarded-prefix'])),
  };
}

/** Returns the client's address. Proxies append to what the client wrote, so each list is read from its end. */
function clientAddress(peer: string, lists: readonly (readonly string[])[], proxies: Networks): string {
  const named = lists.filter((list) => list.length > 0);
  const [address = peer, other = address] = named.map((list) => lastUntrusted(peer, list, proxies));
  // A proxy sets one of the two headers and may pass the other unchanged from the client, so neither is believed.
  return address === other ? address : peer;
}

/** Returns the last address that is not a trusted proxy's, or the address of the proxy farthest from us. */
function lastUntrusted(peer: string, hops: readonly string[], proxies: Networks): string {
  let address = peer;
  for (const hop of hops.toReversed().map(addressIn)) {
    if (!proxies.has(address) || isIP(hop) === 0) break;
    address = hop;
  }
  return address;
}

/** Removes the port from `192.0.2.1:4711` and `[2001:db8::1]:4711`; returns any other text unchanged. */
function addressIn(node: string): string {
  return plainAddress(/^\[(.*)\](?::\d+)?$/.exec(node)?.[1] ?? /^([\d.]+):\d+$/.exec(node)?.[1] ?? node);
}

/** Each proxy adds the path that it took off at the end, as with the other headers. */
function prefixOf(prefixes: readonly string[]): BasePath | undefined {
  const parsed = prefixes.map(parseBasePath);
  return parsed.includes(undefined) ? undefined : parsed.join('');
}

/**
 * A parameter of a hop, and the comma or semicolon behind it, or the end of the header. No two runs of spaces follow each
 * other: a header of spaces would take time with the square of its length.
 */
const PARAMETER = /\s*([\w!#$%&'*+.^`|~-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"\s*|([^\s",;]+)\s*)?(,|;|$)/y;

type Hop = ReadonlyMap<string, string>;

/**
 * Parses `Forwarded`: the parameters of each hop by their names. In a malformed header every comma separates two hops,
 * so that a quote that a client has opened does not swallow what the proxy has added.
 */
function parseForwarded(header: string): readonly Hop[] {
  return hopsIn(header) ?? header.split(',').flatMap((hop) => hopsIn(hop) ?? []);
}

function hopsIn(text: string): readonly Hop[] | undefined {
  const hops: Map<string, string>[] = [new Map()];
  PARAMETER.lastIndex = 0;
  while (PARAMETER.lastIndex < text.length) {
    const match = PARAMETER.exec(text);
    if (!match) return undefined;
    const [, name = '', quoted, token = '', end] = match;
    hops.at(-1)?.set(name.toLowerCase(), quoted?.replace(/\\(.)/g, '$1') ?? token);
    if (end === ',') hops.push(new Map());
  }
  return hops;
}

function items(header: string | string[] | undefined): readonly string[] {
  return String(header ?? '')
    .split(',')
    .map((item) => item.trim())
    .filter(Boolean);
}
