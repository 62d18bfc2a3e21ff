import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { serviceDirectory } from '../../../src/cli/service-directory.ts';
import { readConfigFile } from '../../../src/config/config-file.ts';
import { type Config, resolveConfig } from '../../../src/config/configuration.ts';
import { ConfigError, OPTIONS, settingsOfEnvironment } from '../../../src/config/settings.ts';
import { Networks } from '../../../src/util/networks.ts';
import { settingsOfArguments } from '../../support/settings.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'davgate-config-'));
});
afterAll(() => rm(folder, { recursive: true }));

const XDG = { XDG_DATA_HOME: '/x/data', XDG_CACHE_HOME: '/x/cache' };

function configOf(...args: string[]): Config {
  return resolveConfig(settingsOfArguments(args), undefined, XDG, '/nowhere');
}

async function fileOf(value: unknown): Promise<Config> {
  const path = join(folder, 'davgate.json');
  await writeFile(path, typeof value === 'string' ? value : JSON.stringify(value));
  const file = await readConfigFile(path);
  return resolveConfig(file.settings, file, XDG, '/nowhere');
}

describe('defaults', () => {
  test('without settings davgate listens on loopback, with one user and the embedded service', () => {
    expect(configOf()).toEqual({
      listen: { host: '127.0.0.1', port: 8765 },
      crossOrigins: [],
      basePath: '',
      trustedProxies: new Networks(),
      tls: undefined,
      dataDirectory: '/x/data/davgate',
      cacheDirectory: '/x/cache/davgate',
      writeMode: 'through',
      checksums: 'given',
      hasHistoryFolders: false,
      redisUrl: undefined,
      coherence: 'strict',
      isRedisVolatile: false,
      log: { level: 'info', format: 'text' },
      logRequests: true,
      drives: [{ name: 'default', service: 'embedded', root: '', deletePolicy: 'auto' }],
      users: [{ name: 'davgate', grants: [{ drive: 'default' }] }],
    });
  });

  test('--trusted-proxy takes networks and addresses separated by commas', () => {
    const { trustedProxies } = configOf('--trusted-proxy', '10.0.0.0/8, ::1');
    expect(['10.1.2.3', '::1', '192.0.2.1'].map((address) => trustedProxies.has(address))).toEqual([
      true,
      true,
      false,
    ]);
  });

  test.each([
    [[], '', undefined],
    [['--base-path', '/drive/'], '/drive', undefined],
    [['--base-path', '/', '--public-url', 'https://a.example/'], '', 'https://a.example'],
    [['--base-path', '/drive', '--public-url', 'https://a.example'], '/drive', 'https://a.example/drive'],
    [
      ['--base-path', '/drive', '--public-url', 'https://a.example/b/drive/'],
      '/drive',
      'https://a.example/b/drive',
    ],
  ])('with %j the base path is %j and the public URL %j', (flags, basePath, publicUrl) => {
    expect(configOf(...flags)).toMatchObject({ basePath, publicUrl });
  });

  test.each([
    [['--listen', 'unix:/run/d.sock'], 0o660],
    [['--listen', 'unix:/run/d.sock', '--socket-mode', '0666', '--no-auth'], 0o666],
  ])('%j listens on a Unix socket and trusts the proxy there', (flags, mode) => {
    const { listen, trustedProxies } = configOf(...flags);
    expect(listen).toEqual({ socketPath: '/run/d.sock', mode });
    expect(trustedProxies.has('unix')).toBe(true);
  });

  test.each([
    [['--listen', 'unix:d.sock'], '--listen: "unix:d.sock" is not unix:PATH'],
    [['--listen', 'unix:/d.sock', '--socket-mode', '888'], '--socket-mode: "888" is not a file mode'],
    [['--socket-mode', '660'], '--socket-mode: needs a Unix socket'],
    [
      ['--listen', 'unix:/d.sock', '--tls-cert', 'c', '--tls-key', 'k'],
      '--tls-cert: davgate serves no https on a Unix socket',
    ],
  ])('%j is refused, and the error says %s', (flags, message) => {
    expect(() => configOf(...flags)).toThrow(message);
  });

  test('--base-path without a slash at its beginning is refused, with an example', () => {
    expect(() => configOf('--base-path', 'drive')).toThrow(
      '--base-path: "drive" is not a path like /drive; begin it with a slash, and percent-encode blanks and special characters',
    );
  });

  test('with only a token davgate uses the public service', () => {
    expect(configOf('--token', 't').drives[0]?.service).toEqual({
      apiUrl: 'https://api.dropboxapi.com',
      contentUrl: 'https://content.dropboxapi.com',
      notifyUrl: 'https://notify.dropboxapi.com',
      credentials: { token: 't' },
    });
  });

  test('--api-url is also the content and notify URL unless those are given', () => {
    expect(
      configOf('--token=t', '--api-url=http://a:1/', '--notify-url', 'http://n').drives[0]?.service,
    ).toEqual({
      apiUrl: 'http://a:1',
      contentUrl: 'http://a:1',
      notifyUrl: 'http://n',
      credentials: { token: 't' },
    });
  });
});

describe('XDG directories', () => {
  const directories = (environment: NodeJS.ProcessEnv) => {
    const { dataDirectory, cacheDirectory } = resolveConfig(new Map(), undefined, environment, '/nowhere');
    return [dataDirectory, cacheDirectory];
  };

  test.each(['', 'relative'])(
    'the XDG directory %j is ignored in favor of the default below the home directory',
    (value) => {
      const own = [join(homedir(), '.local/share/davgate'), join(homedir(), '.cache/davgate')];
      expect(directories({ XDG_DATA_HOME: value, XDG_CACHE_HOME: value })).toEqual(own);
      expect(directories({})).toEqual(own);
      expect(serviceDirectory(undefined, { XDG_DATA_HOME: value })).toBe(
        join(homedir(), '.local/share/davgate-service'),
      );
    },
  );
});

describe('sources of settings', () => {
  test('a flag takes precedence over an environment variable', () => {
    const settings = new Map([
      ...settingsOfEnvironment({ DAVGATE_DELETE: 'trash', DAVGATE_ROOT: '/a' }),
      ...settingsOfArguments(['--delete', 'permanent']),
    ]);
    const [drive] = resolveConfig(settings, undefined, XDG, '/nowhere').drives;
    expect(drive).toMatchObject({ deletePolicy: 'permanent', root: '/a' });
  });

  test('a configuration file can have several users and drives', async () => {
    const config = await fileOf({
      listen: '[::1]:80',
      drives: { home: { token: 'one', root: '/Home/' }, local: {} },
      users: [
        { name: 'ann', password: 'secret', drive: 'home' },
        { name: 'bob', 'password-hash': 'scrypt$…', drive: 'local' },
      ],
    });
    expect(config.listen).toEqual({ host: '::1', port: 80 });
    expect(config.drives.map(({ name, root }) => [name, root])).toEqual([
      ['home', '/Home'],
      ['local', ''],
    ]);
    expect(config.users).toEqual([
      { name: 'ann', password: 'secret', grants: [{ drive: 'home' }] },
      { name: 'bob', passwordHash: 'scrypt$…', grants: [{ drive: 'local' }] },
    ]);
  });

  test.each([
    'redis://localhost',
    'rediss://ann:p%40ss@redis.example.com:6380/7',
    'redis://:pass@[::1]:1/',
    'redis+sentinel://a:1,b:2/drives',
    'rediss+cluster://ann:p@a:1,b:2',
  ])('--redis accepts %s', (url) => {
    expect(configOf('--redis', url).redisUrl).toBe(url);
  });
});

describe('refused settings', () => {
  test.each([
    [['--listen', '8765'], /^--listen: "8765" is not HOST:PORT; write for example/],
    [['--listen', '127.0.0.1:70000'], /^--listen: /],
    [['--listen'], /^--listen: a value is missing; write --listen HOST:PORT/],
    [['--lisen', 'x'], /^--lisen: no such option \(did you mean "--listen"\?\)/],
    [['--token', 'a', '--token', 'b'], /^--token: given twice/],
    [['--delete', 'never'], /^--delete: "never" is not one of auto, permanent, trash/],
    [['--write-mode', 'fast'], /^--write-mode: "fast" is not one of through, back/],
    [['--write-mode', 'back', '--redis', 'redis://h'], /^--write-mode: "back" .* --redis .* leave one out$/],
    [['--api-url', 'api.example.com', '--token', 't'], /^--api-url: .* is not an address/],
    [['--api-url', 'http://x'], /^--api-url: a service needs a login; run davgate login, or give --token/],
    [
      ['--api-url', 'http://x/2', '--token', 't'],
      /^--api-url: "http:\/\/x\/2" ends with .* leave out the \/2/,
    ],
    [['--account', 'ann@example.org', '--token', 't'], /^--account: is only for the embedded service/],
    [['--root', 'Team', '--token', 't'], /^--root: "Team" is not a folder's path/],
    [['--no-auth', '--listen', '0.0.0.0:80'], /^--no-auth: 0\.0\.0\.0 can be reached from outside/],
    [['--no-auth', '--user', 'x'], /^--no-auth: .*--user is given/],
    [['--user', 'a:b'], /^--user: a user's name cannot contain a colon/],
    [['--password', ''], /^--password: a value is missing/],
    [['--tls-cert', 'x'], /^--tls-cert: a certificate without its key/],
    [['--http2', 'on'], /^--http2: needs https; give --tls-cert and --tls-key too/],
    [['--http2', 'h2c'], /^--http2: "h2c" is not one of on, off/],
    [['--tls-client-ca', 'x'], /^--tls-client-ca: needs https; give --tls-cert and --tls-key too/],
    [['--refresh-token', 'x'], /DAVGATE_REFRESH_TOKEN/],
    [['--user', 'ann\n'], /^--user: contains a control character, perhaps a line break/],
    [['--password', 'secret\r'], /^--password: contains a control character/],
    [['--token', 'abc\n'], /^--token: contains characters that no token has/],
    [['--root', '/a/../b', '--token', 't'], /^--root: "\/a\/\.\.\/b" is not a folder's path/],
    [['--root', '/.', '--token', 't'], /^--root: /],
    [
      ['--no-auth', '--listen', '127.example.org:80'],
      /^--no-auth: 127\.example\.org can be reached from outside/,
    ],
    [['--cors-origin', '*'], /^--cors-origin: "\*" is not an origin of web pages; write https:\/\/HOST/],
    [['--cors-origin', 'https://a.example/page'], /^--cors-origin: /],
    [['--cors-origin', 'https://a.example,'], /^--cors-origin: "" is not/],
    [
      ['--trusted-proxy', '10.0.0.0/8,proxy'],
      /^--trusted-proxy: "proxy" is neither a network nor an address; write/,
    ],
    [['--trusted-proxy', '10.0.0.0/33'], /^--trusted-proxy: "10\.0\.0\.0\/33" is neither/],
    [['--redis', 'localhost:6379'], /^--redis: not the address of a Redis; write redis:\/\/HOST:PORT, /],
    [['--redis', 'redis://ann:100%@localhost'], /^--redis: .*percent-encoded/],
  ])('the arguments %j are refused with the name of the setting and the reason', (args, message) => {
    expect(() => configOf(...args)).toThrow(message);
    expect(() => configOf(...args)).toThrow(ConfigError);
  });

  test('an unknown DAVGATE_ variable is refused with its name', () => {
    expect(() => settingsOfEnvironment({ DAVGATE_LISTN: 'x' })).toThrow(
      'DAVGATE_LISTN: no such setting (did you mean "DAVGATE_LISTEN"?)',
    );
    expect(() => settingsOfEnvironment({ DAVGATE_PORTS: 'x' })).toThrow(
      'DAVGATE_PORTS: no such setting; davgate serve --help lists the variables',
    );
  });

  test('the variables that Kubernetes sets for a service called davgate, and that of davgate service, are ignored', () => {
    const links = {
      DAVGATE_SERVICE_HOST: '10.0.0.1',
      DAVGATE_SERVICE_PORT: '8765',
      DAVGATE_SERVICE_PORT_HTTP: '8765',
      DAVGATE_PORT: 'tcp://10.0.0.1:8765',
      DAVGATE_PORT_8765_TCP: 'tcp://10.0.0.1:8765',
      DAVGATE_PORT_8765_TCP_PROTO: 'tcp',
      DAVGATE_PORT_8765_TCP_PORT: '8765',
      DAVGATE_PORT_8765_TCP_ADDR: '10.0.0.1',
    };
    expect(settingsOfEnvironment({ ...links, DAVGATE_METADATA: 'postgres://db/davgate' })).toEqual(new Map());
  });

  test('an empty variable is refused where the setting needs a value', () => {
    for (const { name, variable, ...option } of OPTIONS) {
      const settings = () => settingsOfEnvironment({ [variable]: '' });
      if ('value' in option && name !== 'root')
        expect(settings).toThrow(`${variable}: empty; write a value or leave it out`);
      else expect(settings().get(name)?.text).toBe('');
    }
  });

  test('a URL that contains a login, or an invalid token, is refused without being quoted', () => {
    for (const flag of ['--api-url', '--content-url', '--notify-url'])
      for (const url of ['https://ann:SECRET@api.example', 'ann:SECRET@api.example'])
        expect(() => configOf('--token', 't', flag, url)).toThrow(
          expect.objectContaining({
            message: expect.stringMatching(/^(?!.*SECRET)--[a-z-]+: contains a login/),
          }),
        );
    expect(() => configOf('--token', 'SECRET\n')).toThrow(
      expect.objectContaining({ message: expect.not.stringContaining('SECRET') }),
    );
  });

  test('a configuration file with users excludes --password, --user and --no-auth', async () => {
    const path = join(folder, 'users.json');
    await writeFile(path, JSON.stringify({ users: [{ name: 'ann', password: 'p', drive: 'default' }] }));
    const file = await readConfigFile(path);
    const resolve =
      (...args: string[]) =>
      () =>
        resolveConfig(settingsOfArguments(args), file, XDG, '/nowhere').users;
    expect(resolve('--password', 'x')).toThrow(/^--password: "users" in .* lists the users; leave one out$/);
    expect(resolve('--user', 'x')).toThrow(/^--user: "users" in /);
    expect(resolve('--no-auth')).toThrow(
      /^--no-auth: excludes users and passwords, but "users" in .* is given/,
    );
    expect(resolve()()).toEqual([{ name: 'ann', password: 'p', grants: [{ drive: 'default' }] }]);
  });

  test('a user of a configuration file can have several drives, and a root folder in each', async () => {
    const config = await fileOf({
      drives: { home: {}, local: {} },
      users: [
        { name: 'ann', password: 'p', drive: 'home', root: '/People/Ann/' },
        { name: 'bob', password: 'p', drives: ['home', { drive: 'local', root: '/Bob', 'read-only': true }] },
        { name: 'eve', password: 'p', drives: ['home'], 'read-only': true },
      ],
    });
    expect(config.users?.map(({ grants }) => grants)).toEqual([
      [{ drive: 'home', root: '/People/Ann' }],
      [
        { drive: 'home', folder: 'home' },
        { drive: 'local', folder: 'local', root: '/Bob', isReadOnly: true },
      ],
      [{ drive: 'home', folder: 'home', isReadOnly: true }],
    ]);
  });

  test('users and drives of a configuration file can be read-only, and --read-only makes the only drive so', async () => {
    const config = await fileOf({
      drives: { home: { 'read-only': true }, local: { 'read-only': 'false' } },
      users: [
        { name: 'ann', password: 'p', drive: 'home' },
        { name: 'bob', password: 'p', drive: 'local', 'read-only': true },
        { name: 'eve', password: 'p', drive: 'local', 'read-only': false },
      ],
    });
    expect(config.drives.map(({ name, isReadOnly = false }) => [name, isReadOnly])).toEqual([
      ['home', true],
      ['local', false],
    ]);
    expect(config.users?.map(({ grants }) => grants)).toEqual([
      [{ drive: 'home' }],
      [{ drive: 'local', isReadOnly: true }],
      [{ drive: 'local' }],
    ]);
    expect(configOf('--read-only').drives[0]?.isReadOnly).toBe(true);
  });

  test.each([
    [{ delete: 'never' }, /^"delete" in .*, line 1, column 11: "never" is not one of auto/],
    [{ token: '' }, /"token" in .*: empty; write a value/],
    [
      { drives: { a: {}, b: {} } },
      /every user gets the drive a and nobody gets b; remove that drive, or add "users"/,
    ],
    [
      { 'no-auth': true, drives: { a: {}, b: {} } },
      /"no-auth" in .* every user gets the drive a and nobody gets b/,
    ],
    [{ root: '/a', drives: { b: {} } }, /"root" in .* has "drives"; write it there/],
    [
      { users: [{ name: 'a', password: 'p', drive: 'nowhere' }] },
      /the drive "nowhere" of user a is not one of default/,
    ],
    [{ users: [{ name: 'a\n', password: 'p', drive: 'default' }] }, /"name" in .* control character/],
    [{ users: [{ name: 'a', password: 'p\n', drive: 'default' }] }, /"password" in .* control character/],
    [
      { users: [{ name: 'a', password: 'p', drives: ['default', 'nowhere'] }] },
      /the drive "nowhere" of user a is not one of default/,
    ],
    [
      { users: [{ name: 'a', password: 'p', drives: ['default', { drive: 'Default' }] }] },
      /this drive is in the list twice/,
    ],
    [{ users: [{ name: 'a', drive: 'default' }] }, /user a: write either "password" or "password-hash"/],
    [{ users: [{ name: 'a', password: 'p', drives: [] }] }, /"drives" of a user must be a list/],
    [
      { users: [{ name: 'a', password: 'p', drives: ['default'], root: '/x' }] },
      /"drives" and "root" exclude each other/,
    ],
    [
      { users: [{ name: 'a', password: 'p', drives: [{ drive: 'default', rot: '/x' }] }] },
      /unknown key "rot" \(did you mean "root"\?\); a drive of a user has/,
    ],
    [
      { users: [{ name: 'a', password: 'p', drive: 'default', root: '/a/../b' }] },
      /"root" in .* is not a folder's path/,
    ],
    [
      { users: [{ name: 'a', password: 'p', drive: 'default', 'read-only': 'yes' }] },
      /"read-only" must be true or false, without quotes/,
    ],
  ])(
    'the configuration file %j is refused with the name of the setting and the reason',
    async (value, message) => {
      await expect(fileOf(value)).rejects.toThrow(message);
    },
  );

  test('an invalid --redis URL with a password is refused without the password', () => {
    expect(() => configOf('--redis', 'redis://ann:SECRET@host/x')).toThrow(
      expect.objectContaining({ message: expect.not.stringContaining('SECRET') }),
    );
  });

  test('a missing configuration file is refused with its path and error code', async () => {
    await expect(readConfigFile('/does/not/exist')).rejects.toThrow(
      /--config: cannot read \/does\/not\/exist \(ENOENT\)/,
    );
  });
});
