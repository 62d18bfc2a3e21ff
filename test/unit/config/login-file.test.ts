import { mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { readConfigFile } from '../../../src/config/config-file.ts';
import { type Config, resolveConfig } from '../../../src/config/configuration.ts';
import { loginFile, readLogin, removeLogin, writeLogin } from '../../../src/config/login-file.ts';
import { settingsOfEnvironment } from '../../../src/config/settings.ts';
import { settingsOfArguments } from '../../support/settings.ts';

const LOGIN = {
  apiUrl: 'https://api.example',
  contentUrl: 'https://content.example',
  notifyUrl: 'https://notify.example',
  appKey: 'app',
  refreshToken: 'SECRET',
  accountId: 'dbid:one',
};

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'davgate-login-'));
});
afterEach(() => rm(directory, { recursive: true }));

function configOf(args: readonly string[] = [], environment: Record<string, string> = {}): Config {
  const settings = new Map([
    ...settingsOfEnvironment(environment),
    ...settingsOfArguments(['--data-dir', directory, ...args]),
  ]);
  return resolveConfig(settings, undefined, {}, '/nowhere');
}

const serviceOf = (config: Config) => config.drives[0]?.service;

describe('the login file', () => {
  test('the login file is readable by its owner only, replaces a temporary file and can be removed', async () => {
    await writeFile(`${loginFile(directory)}.new`, 'left by a kill', { mode: 0o644 });
    await writeLogin(directory, LOGIN);
    expect((await stat(loginFile(directory))).mode & 0o777).toBe(0o600);
    expect(await readdir(directory)).toEqual(['login.json']);
    expect(readLogin(directory)).toEqual(LOGIN);
    await removeLogin(directory);
    expect(readLogin(directory)).toBeUndefined();
  });

  test.each([
    ['half a file', '{"apiUrl": "SECRET'],
    ['a missing field', '{"apiUrl": "x", "refreshToken": "SECRET"}'],
    ['a field of the wrong type', JSON.stringify({ ...LOGIN, appKey: 7 })],
    ['null', 'null'],
  ])('a login file with %s is refused with its path and without its content', async (_name, text) => {
    await writeFile(loginFile(directory), text);
    expect(() => readLogin(directory)).toThrow(
      `${loginFile(directory)}: not a login that davgate login wrote; delete it and log in again`,
    );
  });
});

describe('the service after a login', () => {
  beforeEach(() => writeLogin(directory, LOGIN));

  test('after a login davgate serves its account, also when the same service and app are given', () => {
    const { apiUrl, contentUrl, notifyUrl } = LOGIN;
    const credentials = { appKey: 'app', refreshToken: 'SECRET' };
    expect(serviceOf(configOf())).toEqual({ apiUrl, contentUrl, notifyUrl, credentials });
    expect(serviceOf(configOf(['--api-url', 'https://api.example/'], { DAVGATE_APP_KEY: 'app' }))).toEqual({
      apiUrl,
      contentUrl,
      notifyUrl,
      credentials,
    });
  });

  test('a token or refresh token in the settings takes precedence over the login', () => {
    expect(serviceOf(configOf(['--token', 't']))).toMatchObject({
      apiUrl: 'https://api.dropboxapi.com',
      credentials: { token: 't' },
    });
    const environment = { DAVGATE_APP_KEY: 'k', DAVGATE_REFRESH_TOKEN: 'r' };
    expect(serviceOf(configOf([], environment))).toMatchObject({
      credentials: { appKey: 'k', refreshToken: 'r' },
    });
  });

  test('after a login another --api-url or app key is refused, because the token does not belong to it', () => {
    expect(() => configOf(['--api-url', 'https://evil.example'])).toThrow(
      `--api-url: ${loginFile(directory)} is a login at https://api.example with the app app; leave this out or run davgate login --remove first`,
    );
    expect(() => configOf([], { DAVGATE_APP_KEY: 'other' })).toThrow(/^DAVGATE_APP_KEY: .* is a login at/);
  });

  test('drives in a configuration file do not use the login', async () => {
    const path = join(directory, 'config.json');
    await writeFile(
      path,
      JSON.stringify({
        'data-dir': directory,
        drives: { local: {} },
        users: [{ name: 'a', password: 'b', drive: 'local' }],
      }),
    );
    const file = await readConfigFile(path);
    expect(serviceOf(resolveConfig(file.settings, file, {}, '/nowhere'))).toBe('embedded');
  });
});
