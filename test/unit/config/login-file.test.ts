import { mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { settingsOfArguments } from '../../../src/cli/arguments.ts';
import { readConfigFile } from '../../../src/config/config-file.ts';
import { type Config, resolveConfig } from '../../../src/config/configuration.ts';
import { loginFile, readLogin, removeLogin, writeLogin } from '../../../src/config/login-file.ts';
import { settingsOfEnvironment } from '../../../src/config/settings.ts';

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

describe('the file', () => {
  test('is for its owner alone, and nothing is left beside it', async () => {
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
    ['a field too few', '{"apiUrl": "x", "refreshToken": "SECRET"}'],
    ['another kind of field', JSON.stringify({ ...LOGIN, appKey: 7 })],
    ['null', 'null'],
  ])('%s is refused by name, and never quoted', async (_name, text) => {
    await writeFile(loginFile(directory), text);
    expect(() => readLogin(directory)).toThrow(
      `${loginFile(directory)}: not a login that davgate login wrote; delete it and log in again`,
    );
  });
});

describe('what is served after a login', () => {
  beforeEach(() => writeLogin(directory, LOGIN));

  test('is its account, where nothing else is said', () => {
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

  test('is what a token says that is given', () => {
    expect(serviceOf(configOf(['--token', 't']))).toMatchObject({
      apiUrl: 'https://api.dropboxapi.com',
      credentials: { token: 't' },
    });
    const environment = { DAVGATE_APP_KEY: 'k', DAVGATE_REFRESH_TOKEN: 'r' };
    expect(serviceOf(configOf([], environment))).toMatchObject({
      credentials: { appKey: 'k', refreshToken: 'r' },
    });
  });

  test('is refused at another service or for another app: the token is not for them', () => {
    expect(() => configOf(['--api-url', 'https://evil.example'])).toThrow(
      `--api-url: ${loginFile(directory)} is a login at https://api.example with the app app; leave this out or run davgate login --remove first`,
    );
    expect(() => configOf([], { DAVGATE_APP_KEY: 'other' })).toThrow(/^DAVGATE_APP_KEY: .* is a login at/);
  });

  test('drives of a file say their own', async () => {
    const path = join(directory, 'config.json');
    await writeFile(
      path,
      JSON.stringify({
        'data-dir': directory,
        drives: { local: {} },
        users: [{ name: 'a', password: 'b', drive: 'local' }],
      }),
    );
    const file = readConfigFile(path);
    expect(serviceOf(resolveConfig(file.settings, file, {}, '/nowhere'))).toBe('embedded');
  });
});
