import { expect, test } from 'vitest';
import { metadataWarnings, startWarnings, unusedMetadataWarnings } from '../../../src/cli/start-warnings.ts';
import { Networks } from '../../../src/util/networks.ts';
import { settingsOfArguments } from '../../support/settings.ts';

const tls = { certFile: 'cert.pem', keyFile: 'key.pem' };
const trustedProxies = new Networks();
const warnings = (args: readonly string[], host = '127.0.0.1', more = {}) =>
  startWarnings(settingsOfArguments(args), {
    listen: { host, port: 8765 },
    tls: undefined,
    trustedProxies,
    ...more,
  });

test.each(['0.0.0.0', '::', '192.0.2.7', 'nas.local'])(
  'a start on %s without TLS warns that passwords and files are sent unencrypted',
  (host) => {
    expect(warnings([], host)).toEqual([
      expect.stringMatching(
        /^\S+ can be reached from outside, and passwords and files cross the network unencrypted; give --tls-cert/,
      ),
    ]);
    expect(warnings([], host, { tls })).toEqual([]);
    expect(warnings([], host, { trustedProxies: new Networks(['192.0.2.1']) })).toEqual([]);
  },
);

test.each(['127.0.0.1', '::1', 'localhost'])('a start on %s warns of nothing', (host) => {
  expect(warnings([], host)).toEqual([]);
});

test.each(['password', 'token'])(
  'a start with --%s warns that the list of processes shows it, and one with a file does not',
  (name) => {
    expect(warnings([`--${name}`, 'SECRET'])).toEqual([
      expect.stringMatching(new RegExp(`^--${name}: (?!.*SECRET).*use --${name}-file FILE or DAVGATE_`)),
    ]);
    expect(warnings([`--${name}-file`, '/a/file'])).toEqual([]);
  },
);

test('a start with a password in --redis warns and names DAVGATE_REDIS_URL', () => {
  expect(warnings(['--redis', 'redis://ann:SECRET@localhost'])).toEqual([
    expect.stringMatching(/^--redis: (?!.*SECRET).*; use DAVGATE_REDIS_URL$/),
  ]);
  expect(warnings(['--redis', 'redis://localhost:6379'])).toEqual([]);
});

test.each(['postgres://davgate:SECRET@db.example/davgate', 'postgres://db.example/davgate?password=SECRET'])(
  'a start of davgate service with --metadata %s warns that the list of processes shows the password',
  (metadata) => {
    expect(metadataWarnings(metadata)).toEqual([
      expect.stringMatching(/^--metadata: (?!.*SECRET).*; use PGPASSWORD or DAVGATE_METADATA$/),
    ]);
  },
);

test('a gateway with an embedded service warns that it does not use DAVGATE_METADATA, and one without does not', () => {
  const environment = { DAVGATE_METADATA: 'postgres://ann:SECRET@db.example/davgate' };
  expect(unusedMetadataWarnings(environment, 1)).toEqual([
    expect.stringMatching(/^DAVGATE_METADATA: (?!.*SECRET)only davgate service uses it/),
  ]);
  expect(unusedMetadataWarnings(environment, 0)).toEqual([]);
  expect(unusedMetadataWarnings({}, 1)).toEqual([]);
});

test('a start of davgate service without a password in --metadata warns of nothing', () => {
  expect(metadataWarnings('postgres://davgate@db.example:5432/davgate?sslmode=require')).toEqual([]);
  expect(metadataWarnings(undefined)).toEqual([]);
});
