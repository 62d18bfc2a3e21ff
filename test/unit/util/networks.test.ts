import { describe, expect, test } from 'vitest';
import { Networks, neighborhoodOf, plainAddress } from '../../../src/util/networks.ts';

describe('Networks', () => {
  test.each([
    ['10.0.0.0/8', '10.1.2.3', true],
    ['10.0.0.0/8', '11.0.0.1', false],
    ['192.0.2.1', '192.0.2.1', true],
    ['192.0.2.1', '192.0.2.2', false],
    ['0.0.0.0/0', '203.0.113.5', true],
    ['0.0.0.0/0', '2001:db8::1', false],
    ['2001:db8::/32', '2001:db8:1::5', true],
    ['2001:db8::/32', '2001:db9::5', false],
    ['::1', '::1', true],
    ['10.0.0.0/8', 'unknown', false],
    ['10.0.0.0/8', '', false],
  ])('the network %s contains the address %s: %s', (cidr, address, isInside) => {
    expect(new Networks([cidr]).has(address)).toBe(isInside);
  });

  test.each(['', '10.0.0.0/33', '10.0.0/8', '::/129', 'proxy.example', '10.0.0.0/-1', '10.0.0.0/8/8'])(
    'the network %j is refused with its text',
    (cidr) => {
      expect(() => new Networks(['127.0.0.1', cidr])).toThrow(new RangeError(cidr));
    },
  );
});

test.each([
  ['192.0.2.1', '192.0.2.1'],
  ['2001:db8:0:1::5', '2001:db8:0:1::/64'],
  ['2001:DB8:0:1:ffff::5', '2001:db8:0:1::/64'],
  ['2001:0db8:0000:0001:0:0:0:5', '2001:db8:0:1::/64'],
  ['::1', '0:0:0:0::/64'],
  ['fe80::1%eth0', 'fe80:0:0:0::/64'],
  ['2001:db8::', '2001:db8:0:0::/64'],
])('the address %s belongs to the neighborhood %s', (address, neighborhood) => {
  expect(neighborhoodOf(address)).toBe(neighborhood);
});

test('plainAddress returns an IPv4-mapped address as IPv4', () => {
  expect(plainAddress('::ffff:192.0.2.1')).toBe('192.0.2.1');
  expect(plainAddress('::1')).toBe('::1');
});
