import { expect, test } from 'vitest';
import { isPublicAddress } from '../../../../src/service/save-url/public-address.ts';

test.each([
  '0.0.0.0',
  '0.1.2.3',
  '10.0.0.0',
  '10.255.255.255',
  '100.64.0.1',
  '100.127.255.255',
  '127.0.0.1',
  '127.255.255.255',
  '169.254.169.254',
  '172.16.0.1',
  '172.31.255.255',
  '192.0.0.8',
  '192.0.2.1',
  '192.88.99.1',
  '192.168.0.1',
  '192.168.255.255',
  '198.18.0.1',
  '198.19.255.255',
  '198.51.100.1',
  '203.0.113.1',
  '224.0.0.1',
  '239.255.255.255',
  '240.0.0.1',
  '255.255.255.255',
])('%s is not a public IPv4 address', (address) => {
  expect(isPublicAddress(address)).toBe(false);
});

test.each([
  '1.1.1.1',
  '9.255.255.255',
  '11.0.0.0',
  '100.63.255.255',
  '100.128.0.0',
  '126.255.255.255',
  '128.0.0.0',
  '169.253.255.255',
  '169.255.0.0',
  '172.15.255.255',
  '172.32.0.0',
  '192.167.255.255',
  '192.169.0.0',
  '223.255.255.255',
])('%s is a public IPv4 address', (address) => {
  expect(isPublicAddress(address)).toBe(true);
});

test.each([
  '::',
  '::1',
  '::127.0.0.1',
  '::ffff:10.0.0.1',
  '::ffff:7f00:1',
  '::ffff:1.1.1.1',
  '64:ff9b::a00:1',
  '64:ff9b:1::1',
  '100::1',
  '2001::1',
  '2001:1ff::1',
  '2001:db8::1',
  '2002:7f00:1::',
  '3fff:fff::1',
  '4000::1',
  'fc00::1',
  'fdff::1',
  'fe80::1',
  'fe80::1%eth0',
  'fec0::1',
  'ff02::1',
])('%s is not a public IPv6 address', (address) => {
  expect(isPublicAddress(address)).toBe(false);
});

test.each(['2001:200::1', '2001:4860:4860::8888', '2606:4700:4700::1111', '2a00:1450::1', '3ffe::1'])(
  '%s is a public IPv6 address',
  (address) => {
    expect(isPublicAddress(address)).toBe(true);
  },
);

test('a name is not a public address', () => {
  expect(isPublicAddress('example.org')).toBe(false);
});
