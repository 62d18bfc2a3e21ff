import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readHtpasswd } from '../../../src/app/htpasswd.ts';
import { loginsOf } from '../../../src/app/logins.ts';
import { readConfigFile } from '../../../src/config/config-file.ts';
import { resolveConfig } from '../../../src/config/configuration.ts';
import { settingsOfArguments } from '../../support/settings.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'davgate-htpasswd-'));
});
afterAll(() => rm(folder, { recursive: true }));

const SHA = '{SHA}VZMfe93Z46pUw3sGLNwy39U4Msw=';

/** Writes a file of the folder and returns its path. */
async function written(name: string, text: string): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, text);
  return path;
}

test('an htpasswd file may have comments, empty lines, Windows line ends and further fields', async () => {
  const file = await written('good', `# staff\r\n\r\nann:${SHA}\r\nJo\u0308rg:${SHA}:Jörg Maier:x\n`);
  expect([...(await readHtpasswd(file))]).toEqual([
    ['ann', SHA],
    ['Jörg', SHA],
  ]);
});

test.each([
  ['a line without a colon', 'ann', /line 1: not NAME:HASH/],
  ['a line without a name', `\n:${SHA}`, /line 2: not NAME:HASH/],
  ['a user in two lines', `ann:${SHA}\nann:${SHA}`, /line 2: the user ann is listed twice; remove one/],
  ['a clear password', 'ann:geheim', /line 1: user ann: not a password hash of .*htpasswd -B$/],
  ['a hash of crypt(3)', 'ann:E1m1Tko1JPAi6', /line 1: user ann: not a password hash of/],
  [
    'a SHA-512 crypt hash',
    'ann:$6$jic.4iehEyWj4.Yu$7FSH9d8bmuUIssoYwej8',
    /line 1: user ann: not a password hash of/,
  ],
  ['a bcrypt hash of cost 18', `ann:$2y$18$${'a'.repeat(53)}`, /line 1: user ann: .*up to cost 17/],
])(
  '%s in an htpasswd file is refused with its line, and the message quotes no hash',
  async (_, text, message) => {
    const file = await written('bad', text);
    await expect(readHtpasswd(file)).rejects.toThrow(message);
    const hash = text.slice(text.lastIndexOf(':') + 1);
    if (text.includes(':')) await expect(readHtpasswd(file)).rejects.not.toThrow(hash);
  },
);

test('a missing htpasswd file is refused with its name', async () => {
  const file = join(folder, 'none');
  await expect(readHtpasswd(file)).rejects.toThrow(`--htpasswd: cannot read ${file} (ENOENT)`);
});

/** Returns the users for a configuration file's users, an htpasswd file of ann and joe, and arguments. */
async function users(rows: readonly object[] | undefined, ...args: string[]) {
  const file = rows && (await readConfigFile(await written('config.json', JSON.stringify({ users: rows }))));
  const list = await written('list', `ann:${SHA}\njoe:${SHA}\n`);
  const settings = settingsOfArguments(['--htpasswd', list, '--data-dir', join(folder, 'data'), ...args]);
  const config = resolveConfig(settings, file, { XDG_CACHE_HOME: folder }, '/nowhere');
  return (await loginsOf(config)).users?.map(({ name, passwordHash, grants: [grant] }) => [
    name,
    passwordHash === SHA,
    grant?.drive,
    grant?.root,
  ]);
}

test('with --htpasswd alone its users have the first drive, and davgate makes up no user', async () => {
  expect(await users(undefined)).toEqual([
    ['ann', true, 'default', undefined],
    ['joe', true, 'default', undefined],
  ]);
});

test('users of a configuration file take their password from the htpasswd file, or cannot log in', async () => {
  const rows = [
    { name: 'ann', drive: 'default', root: '/Ann' },
    {
      name: 'bob',
      drive: 'default',
      'password-hash': 'scrypt$2$1$1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAA',
    },
    { name: 'eve', drive: 'default' },
  ];
  expect(await users(rows)).toEqual([
    ['ann', true, 'default', '/Ann'],
    ['bob', false, 'default', undefined],
    ['joe', true, 'default', undefined],
  ]);
});

test('a user with a password in the settings and one in the htpasswd file is refused', async () => {
  await expect(users(undefined, '--user', 'ann', '--password', 'x')).rejects.toThrow(
    /^the user ann has one password in .* and another in the settings; remove one$/,
  );
});

test('--no-auth excludes --htpasswd', async () => {
  await expect(users(undefined, '--no-auth')).rejects.toThrow(
    /^--no-auth: excludes .* but --htpasswd is given/,
  );
});
