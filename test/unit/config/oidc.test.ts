import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { loginsOf } from '../../../src/app/logins.ts';
import { readConfigFile } from '../../../src/config/config-file.ts';
import { resolveConfig } from '../../../src/config/configuration.ts';
import { settingsOfCredentials, withSecretFiles } from '../../../src/config/secret-sources.ts';
import { settingsOfEnvironment } from '../../../src/config/settings.ts';
import { temporaryDirectory } from '../../support/program.ts';
import { settingsOfArguments } from '../../support/settings.ts';

let home: Awaited<ReturnType<typeof temporaryDirectory>>;
beforeAll(async () => {
  home = await temporaryDirectory();
});
afterAll(() => home.remove());

const ISSUER = 'https://login.example.com/realms/home';

const configOf = (...args: string[]) =>
  resolveConfig(settingsOfArguments(['--data-dir', home.path, ...args]), undefined, {}, '/nowhere');

/** Returns the configuration of a file. */
async function fileOf(value: object) {
  const path = join(home.path, 'davgate.json');
  writeFileSync(path, JSON.stringify({ 'data-dir': home.path, drives: { d: {} }, ...value }));
  const file = await readConfigFile(path);
  return resolveConfig(file.settings, file, {}, '/nowhere');
}

test('without settings for OpenID Connect there is no provider', () => {
  expect(configOf().oidc).toBeUndefined();
});

test('the provider’s name is its host, and the user name its preferred_username, if nothing else is said', () => {
  const { oidc, users } = configOf('--oidc-issuer', ISSUER, '--oidc-client-id', 'x', '--user', 'ann');
  expect(oidc).toEqual({
    issuer: ISSUER,
    clientId: 'x',
    clientSecret: undefined,
    name: 'login.example.com',
    userClaim: 'preferred_username',
    scope: 'openid profile email',
    users: 'configured',
  });
  expect(users).toEqual([{ name: 'ann', grants: [{ drive: 'default' }], isListedElsewhere: true }]);
});

test('the slash at the end of an issuer is kept, because it belongs to its name', () => {
  const { oidc } = configOf('--oidc-issuer', `${ISSUER}/`, '--oidc-client-id', 'x', '--oidc-users', 'all');
  expect(oidc?.issuer).toBe(`${ISSUER}/`);
});

test('users of the configuration file need no password beside a provider, and none is made up for them', async () => {
  const provider = { 'oidc-issuer': ISSUER, 'oidc-client-id': 'x', 'oidc-client-secret': 's' };
  const users = [
    { name: 'ann', drive: 'd' },
    { name: 'bob', drive: 'd', 'password-hash': '{SHA}x' },
  ];
  const config = await fileOf({ ...provider, users });
  expect(config.oidc?.clientSecret).toBe('s');
  const grants = [{ drive: 'd' }];
  expect(await loginsOf(config)).toEqual({
    users: [
      { name: 'ann', grants },
      { name: 'bob', grants, passwordHash: '{SHA}x' },
    ],
    madeUpPassword: undefined,
  });
});

test('with --oidc-users all no user needs to be configured', async () => {
  const config = configOf('--oidc-issuer', ISSUER, '--oidc-client-id', 'x', '--oidc-users', 'all');
  expect(await loginsOf(config)).toEqual({ users: [], madeUpPassword: undefined });
});

test('the client secret comes from a variable, a file or a credential of systemd, and never from a flag', () => {
  const path = join(home.path, 'secret');
  writeFileSync(path, 'from a file\n');
  const sources = [
    settingsOfEnvironment({ DAVGATE_OIDC_CLIENT_SECRET: 'from a variable' }),
    withSecretFiles(settingsOfArguments(['--oidc-client-secret-file', path])),
  ];
  writeFileSync(join(home.path, 'davgate-oidc-client-secret'), 'from systemd\n');
  sources.push(settingsOfCredentials({ CREDENTIALS_DIRECTORY: home.path }));
  expect(sources.map((settings) => settings.get('oidc-client-secret')?.text)).toEqual([
    'from a variable',
    'from a file',
    'from systemd',
  ]);
  expect(() => settingsOfArguments(['--oidc-client-secret', 's'])).toThrow(/oidc-client-secret/);
});

test.each([
  [['--oidc-issuer', ISSUER], /^--oidc-issuer: .*register davgate .* give --oidc-client-id too$/],
  [
    ['--oidc-client-id', 'x'],
    /^--oidc-client-id: needs a provider; give --oidc-issuer too, or leave it out$/,
  ],
  [['--oidc-name', 'x'], /^--oidc-name: needs a provider/],
  [
    ['--oidc-issuer', 'login.example.com', '--oidc-client-id', 'x'],
    /^--oidc-issuer: .* is not an address like/,
  ],
  [
    ['--oidc-issuer', 'http://login.example.com', '--oidc-client-id', 'x'],
    /^--oidc-issuer: sign-ins would cross the network unencrypted/,
  ],
  [
    ['--oidc-issuer', ISSUER, '--oidc-client-id', 'x', '--oidc-scope', 'profile email'],
    /^--oidc-scope: without the scope openid the provider says nothing about the user; add it$/,
  ],
  [
    ['--oidc-issuer', ISSUER, '--oidc-client-id', 'x', '--oidc-users', 'some'],
    /^--oidc-users: "some" is not one of configured, all$/,
  ],
  [
    ['--oidc-issuer', ISSUER, '--oidc-client-id', 'x'],
    /^--oidc-issuer: nobody may sign in; list "users" in a configuration file, or give --oidc-users all$/,
  ],
  [
    ['--oidc-issuer', ISSUER, '--oidc-client-id', 'x', '--no-auth'],
    /^--no-auth: excludes users and passwords, but --oidc-issuer is given; leave one out$/,
  ],
])('%j is refused with the name of the setting and what to do', (args, message) => {
  expect(() => configOf(...args)).toThrow(message);
});
