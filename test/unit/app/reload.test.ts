import { expect, test } from 'vitest';
import { settingsForNextStart } from '../../../src/app/reload.ts';
import { resolveConfig } from '../../../src/config/configuration.ts';
import { settingsOfArguments } from '../../support/settings.ts';

const configOf = (...args: string[]) =>
  resolveConfig(
    settingsOfArguments(args),
    undefined,
    { XDG_DATA_HOME: '/x', XDG_CACHE_HOME: '/y' },
    '/nowhere',
  );

test.each([
  ['listen', ['--listen', '127.0.0.1:1']],
  ['trusted-proxy', ['--trusted-proxy', '192.0.2.0/24']],
  ['cors-origin', ['--cors-origin', 'https://a.example']],
  ['data-dir', ['--data-dir', '/z']],
  ['redis', ['--redis', 'redis://localhost']],
  ['tls-cert', ['--tls-cert', 'cert.pem', '--tls-key', 'key.pem']],
  ['no-auth', ['--no-auth']],
  ['oidc-*', ['--oidc-issuer', 'https://x.example', '--oidc-client-id', 'x', '--oidc-users', 'all']],
  ['brand-*', ['--brand-name', 'Choir']],
  ['drive default', ['--delete', 'trash']],
])('a change of %s is reported as waiting for the next start', (name, args) => {
  expect(settingsForNextStart(configOf(), configOf(...args))).toEqual([name]);
});

test('a changed user or password does not wait for the next start', () => {
  expect(settingsForNextStart(configOf(), configOf('--user', 'ann', '--password', 'p'))).toEqual([]);
});

test('a change of http2 waits for the next start, and a changed certificate does not', () => {
  const tls = (cert: string, ...more: string[]) =>
    configOf('--tls-cert', cert, '--tls-key', 'key.pem', ...more);
  expect(settingsForNextStart(tls('a.pem'), tls('b.pem', '--http2', 'off'))).toEqual(['http2']);
});
