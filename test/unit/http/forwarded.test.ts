import { expect, test } from 'vitest';
import { forwardedOf } from '../../../src/http/forwarded.ts';
import { Networks } from '../../../src/util/networks.ts';

const PROXIES = new Networks(['10.0.0.0/8', '::1']);
const PROXY = '10.0.0.1';

test.each([
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
  [
    'Forwarded with a comma in quotes',
    PROXY,
    { forwarded: 'for=198.51.100.1;by="a, for=b"' },
    '198.51.100.1',
  ],
  [
    'a quote that the client left open',
    PROXY,
    { forwarded: 'for=203.0.113.9;by=", for=198.51.100.1' },
    '198.51.100.1',
  ],
  ['rubbish in front', PROXY, { forwarded: 'for=203.0.113.9 rubbish, ,for=198.51.100.1' }, '198.51.100.1'],
  ['an empty value', PROXY, { forwarded: 'by=;for= 198.51.100.1 ;x' }, PROXY],
  ['empty values', PROXY, { forwarded: 'by= ; for=198.51.100.1; proto=' }, '198.51.100.1'],
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
  expect(forwardedOf(peer, headers, PROXIES).address).toBe(address);
});

test('a header of 200,000 spaces is read in a few seconds, and does not hide what the proxy has added', () => {
  const spaces = ' '.repeat(200_000);
  const started = performance.now();
  for (const rubbish of [`a=${spaces}"`, `a${spaces}"`, `a=b${spaces}"`, `a="b"${spaces}"`]) {
    const headers = { forwarded: `${rubbish}, for=198.51.100.1` };
    expect(forwardedOf(PROXY, headers, PROXIES).address).toBe('198.51.100.1');
  }
  // With the square of the length it takes minutes.
  expect(performance.now() - started).toBeLessThan(5000);
});

test.each([
  [{}, []],
  [{ 'x-forwarded-host': 'drive.example:8443' }, ['drive.example:8443']],
  [{ 'x-forwarded-host': 'a.example, b.example' }, ['a.example', 'b.example']],
  [{ forwarded: 'for=192.0.2.1;host="[2001:db8::1]:8443";proto=https' }, ['[2001:db8::1]:8443']],
  [{ forwarded: 'Host = "a\\.example" , for=x;host=b.example' }, ['a.example', 'b.example']],
  [{ forwarded: 'for="x;host=evil.example"' }, []],
])('the hosts that the client asked for by the headers %j are %j', (headers, hosts) => {
  expect(forwardedOf(PROXY, headers, PROXIES).hosts).toEqual(hosts);
});

test.each([
  [{}, false],
  [{ 'x-forwarded-proto': 'https' }, true],
  [{ 'x-forwarded-proto': 'HTTPS, http' }, true],
  [{ 'x-forwarded-proto': 'http' }, false],
  [{ forwarded: 'for=x;proto="https", for=y;proto=http' }, true],
  [{ forwarded: 'for="x;proto=https"' }, false],
])('the headers %j say that the client used https: %j', (headers, isSecure) => {
  expect(forwardedOf(PROXY, headers, PROXIES).isSecure).toBe(isSecure);
});

test.each([
  [undefined, ''],
  ['', ''],
  ['/', ''],
  ['/drive/', '/drive'],
  ['/outer, /inner/', '/outer/inner'],
  ['drive', undefined],
  ['//evil.example', undefined],
  ['/a, /../b', undefined],
])('the header X-Forwarded-Prefix: %j is the prefix %j', (header, prefix) => {
  expect(forwardedOf(PROXY, { 'x-forwarded-prefix': header }, PROXIES).prefix).toBe(prefix);
});
