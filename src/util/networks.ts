import { BlockList, isIP } from 'node:net';

/** Stands for the address of a peer on a Unix socket. */
export const UNIX_PEER = 'unix';

/** A set of IP addresses, given as networks: `10.0.0.0/8`, `2001:db8::/32`, or single addresses; and `unix`. */
export class Networks {
  readonly #list = new BlockList();

  /** Throws `RangeError`, whose message is the invalid text. */
  constructor(readonly cidrs: readonly string[] = []) {
    for (const cidr of cidrs) {
      if (cidr === UNIX_PEER) continue;
      const [, address = '', prefix] = /^([^/]*)(?:\/(\d{1,3}))?$/.exec(cidr) ?? [];
      const bits = { 0: -1, 4: 32, 6: 128 }[isIP(address)] ?? -1;
      const length = prefix === undefined ? bits : Number(prefix);
      if (bits < 0 || length > bits) throw new RangeError(cidr);
      this.#list.addSubnet(address, length, bits === 32 ? 'ipv4' : 'ipv6');
    }
  }

  has(address: string): boolean {
    if (this.cidrs.length === 0) return false;
    if (address === UNIX_PEER) return this.cidrs.includes(UNIX_PEER);
    const version = isIP(address);
    return version !== 0 && this.#list.check(address, version === 4 ? 'ipv4' : 'ipv6');
  }
}

/** Whether only this machine reaches `host`: it is safe without a password and without encryption. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){1,3}$/.test(host);
}

/** Returns the IPv4 address in `::ffff:192.0.2.1`, as sockets for both versions write it; any other address unchanged. */
export function plainAddress(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.)/i, '');
}

/** Returns the network in which one client can change its address: an IPv4 address alone, or an IPv6 /64. */
export function neighborhoodOf(address: string): string {
  if (isIP(address) !== 6) return address;
  const [head = '', tail] = address.replace(/%.*$/, '').toLowerCase().split('::');
  const before = head === '' ? [] : head.split(':');
  const after = tail ? tail.split(':') : [];
  const zeros = tail === undefined ? [] : Array.from({ length: 8 - before.length - after.length }, () => '0');
  const groups = [...before, ...zeros, ...after].slice(0, 4).map((group) => group.replace(/^0+(?=.)/, ''));
  return `${groups.join(':')}::/64`;
}
