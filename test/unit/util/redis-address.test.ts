import { expect, test } from 'vitest';
import { redactedAddress, redisAddressOf } from '../../../src/util/redis-address.ts';

test('the address of a server has host, port, login, database and TLS', () => {
  expect(redisAddressOf('rediss://ann:p%40ss@redis.example.com:6380/7')).toEqual({
    kind: 'server',
    isTls: true,
    username: 'ann',
    password: 'p@ss',
    hosts: [{ host: 'redis.example.com', port: 6380 }],
    primary: '',
    database: 7,
  });
  expect(redisAddressOf('redis://[::1]')).toMatchObject({
    hosts: [{ host: '::1', port: 6379 }],
    database: 0,
  });
});

test('the address of Sentinels has all of them, the name of the primary and a database', () => {
  expect(redisAddressOf('redis+sentinel://:secret@a:1,b/drives/2')).toEqual({
    kind: 'sentinel',
    isTls: false,
    password: 'secret',
    hosts: [
      { host: 'a', port: 1 },
      { host: 'b', port: 26379 },
    ],
    primary: 'drives',
    database: 2,
  });
});

test('the address of a cluster has some of its nodes', () => {
  expect(redisAddressOf('rediss+cluster://a:1,b:2')).toMatchObject({
    kind: 'cluster',
    isTls: true,
    hosts: [
      { host: 'a', port: 1 },
      { host: 'b', port: 2 },
    ],
  });
});

test.each([
  'localhost:6379',
  'http://localhost',
  'redis://',
  'redis://a,b',
  'redis://a/first',
  'redis://a/1?x=y',
  'redis://a:port',
  'redis://ann:100%@a',
  'redis+sentinel://a',
  'redis+sentinel://a/drives/first',
  'redis+sentinel://a/drives/1/2',
  'redis+cluster://a/1',
  'redis+proxy://a',
])('%s is not the address of a Redis', (text) => {
  expect(redisAddressOf(text)).toBeUndefined();
});

test('a redacted address has no password, and everything else', () => {
  expect(redactedAddress('redis+sentinel://ann:SECRET@a:1,b:2/drives')).toBe(
    'redis+sentinel://ann:***@a:1,b:2/drives',
  );
  expect(redactedAddress('redis://:SECRET@a')).toBe('redis://:***@a');
  expect(redactedAddress('redis://a/1')).toBe('redis://a/1');
});
