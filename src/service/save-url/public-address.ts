import { isIP } from 'node:net';
import { Networks } from '../../util/networks.ts';

/**
 * IPv4 networks that are not part of the public Internet (IANA special-purpose registry, RFC 6890), multicast and
 * reserved ones.
 */
const SPECIAL_IPV4 = new Networks([
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
]);

/**
 * Global unicast, the only public part of IPv6. Loopback, unique local, link-local and multicast addresses are outside
 * of it, and so are addresses that contain an IPv4 address (`::ffff:10.0.0.1`, NAT64).
 */
const GLOBAL_IPV6 = new Networks(['2000::/3']);

/**
 * Parts of global unicast that are not public: protocol assignments with Teredo, documentation, and 6to4, which
 * contains an IPv4 address.
 */
const SPECIAL_IPV6 = new Networks(['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20']);

/** Whether an IP address belongs to the public Internet. */
export function isPublicAddress(address: string): boolean {
  switch (isIP(address)) {
    case 4:
      return !SPECIAL_IPV4.has(address);
    case 6:
      return GLOBAL_IPV6.has(address) && !SPECIAL_IPV6.has(address);
    default:
      return false;
  }
}
