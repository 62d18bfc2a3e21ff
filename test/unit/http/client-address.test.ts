import { expect, test } from 'vitest';
import { clientAddress } from '../../../src/http/client-address.ts';
import { Networks } from '../../../src/util/networks.ts';

const PROXIES = new Networks(['10.0.0.0/8', '::1']);
const PROXY = '10.0.0.1';

test.each([
  ['a peer that is not a trusted proxy', '192.0.2.1', { 'x-forwarded-for': '198.51.100.1' }, '192.0.2.1'],
  ['a proxy without headers', PROXY, {}, PROXY],
  ['X-Forwarded-For of one proxy', PROXY, { 'x-forwarded-for': '198.51.100.1' }, '198.51.100.1'],
  ['X-Forwarded-For of two proxies', PROXY, { 'x-forwarded-for': '198.51.100.1, 10.0.0.2' }, '198.51.100.1'],
  ['a forged first entry', PROXY, { 'x-forwarded-for': '203.0.113.9, 198.51.100.1' }, '198.51.100.1'],
  ['a port behind the address', PROXY, { 'x-forwarded-for': '198.51.100.1:4711' }, '198.51.100.1'],
  ['IPv6', '::1', { 'x-forwarded-for': '2001:db8::7' }, '2001:db8::7'],
  ['IPv6 with a port', PROXY, { 'x-forwarded-for': '[2001:db8::7]:80' }, '2001:db8::7'],
  ['Forwarded', PROXY, { forwarded: 'for=198.51.100.1;proto=https' }, '198.51.100.1'],
  ['Forwarded, quoted', PROXY, { forwarded: 'proto=https; For="[2001:db8::7]:80"' }, '2001:db8::7'],
  ['Forwarded of two proxies', PROXY, { forwarded: 'for=198.51.100.1, for=10.0.0.2;by=x' }, '198.51.100.1'],
  ['an obfuscated client', PROXY, { forwarded: 'for=_hidden' }, PROXY],
  ['no address at all', PROXY, { 'x-forwarded-for': 'evil' }, PROXY],
  [
    'two fields that agree',
    PROXY,
    { forwarded: 'for=192.0.2.1', 'x-forwarded-for': '192.0.2.1' },
    '192.0.2.1',
  ],
  ['two fields that disagree', PROXY, { forwarded: 'for=192.0.2.1', 'x-forwarded-for': '192.0.2.2' }, PROXY],
])('the client address for %s (peer %s, headers %j) is %s', (_, peer, headers, address) => {
  expect(clientAddress(peer, headers, PROXIES)).toBe(address);
});
