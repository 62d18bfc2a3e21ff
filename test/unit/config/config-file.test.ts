import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ConfigFile, readConfigFile } from '../../../src/config/config-file.ts';
import { resolveConfig } from '../../../src/config/configuration.ts';
import { ConfigError } from '../../../src/config/settings.ts';

let path: string;
beforeAll(async () => {
  path = join(await mkdtemp(join(tmpdir(), 'davgate-config-')), 'davgate.conf');
});
afterAll(() => rm(join(path, '..'), { recursive: true }));

async function read(content: string | Uint8Array): Promise<ConfigFile> {
  await writeFile(path, content);
  return readConfigFile(path);
}

/** Returns the problems of a file, without the part that names the file. */
async function problemsOf(content: string | Uint8Array): Promise<readonly string[]> {
  const error = await read(content).catch((thrown: unknown) => thrown);
  if (!(error instanceof ConfigError)) throw new Error(`not refused: ${content}`);
  return error.problems.map((problem) => problem.replace(`cannot read ${path}: `, '').replace(path, 'FILE'));
}

const textsOf = ({ settings }: ConfigFile) =>
  Object.fromEntries([...settings].map(([name, { text }]) => [name, text]));

const YAML = `# The drive of the office.
listen: 0.0.0.0:443
no-auth: false
drives:
  work: { root: /Team, refresh-token: r }
  local:
app-key: &key k
app-secret: *key
users:
  - name: ann
    password: "secret # no comment"
    drive: work
`;

describe('forms of a configuration file', () => {
  test('YAML has comments, aliases and drives without settings', async () => {
    const file = await read(YAML);
    expect(textsOf(file)).toEqual({
      listen: '0.0.0.0:443',
      'no-auth': 'false',
      'app-key': 'k',
      'app-secret': 'k',
    });
    expect(file.drives?.map(({ name, settings }) => [name, [...settings.keys()]])).toEqual([
      ['work', ['root', 'refresh-token']],
      ['local', []],
    ]);
    expect(file.users).toEqual([
      {
        name: 'ann',
        password: 'secret # no comment',
        grants: [{ drive: 'work' }],
        origin: expect.stringContaining('user ann'),
      },
    ]);
  });

  test('JSON may have comments, trailing commas, tabs, a byte order mark and $schema', async () => {
    const json = `\uFEFF// An office.
{\r\n\t"$schema": "./schema.json", /* two
\t lines */ "public-url": "https://a.example//b", // "no-auth": true
\t"user": "a \\"// b",
}`;
    expect(textsOf(await read(json))).toEqual({ 'public-url': 'https://a.example//b', user: 'a "// b' });
  });

  test('a comment in JSON keeps the lines and columns of a problem after it', async () => {
    expect(await problemsOf('// one\n{ /* two\n */ "lisen": "x" }')).toEqual([
      'line 3, column 5: unknown key "lisen" (did you mean "listen"?)',
    ]);
  });
});

test('a drive of a user can have a quota, in bytes or a larger unit', async () => {
  const { users } = await read(`users:
  - { name: ann, password: p, drive: home, quota: 5GB }
  - { name: bob, password: p, drives: [{ drive: local, quota: 1000 }, home] }
`);
  expect(users?.map(({ grants }) => grants)).toEqual([
    [{ drive: 'home', quotaBytes: 5e9 }],
    [
      { drive: 'local', folder: 'local', quotaBytes: 1000 },
      { drive: 'home', folder: 'home' },
    ],
  ]);
});

test('bandwidth can be limited for all users together and for one, by an object or by the names of the flags', async () => {
  const file = await read(`bandwidth: { download: 10MB, upload: 500000 }
drives: { home: }
users:
  - { name: ann, password: p, drive: home, bandwidth: { upload: 1MB } }
  - { name: bob, password: p, drive: home }
`);
  const { bandwidth, users } = resolveConfig(file.settings, file, {}, '/nowhere');
  expect(bandwidth).toEqual({ downloadBytes: 10e6, uploadBytes: 500_000 });
  expect(users?.map((user) => user.bandwidth)).toEqual([{ uploadBytes: 1e6 }, undefined]);
  const flags = await read('bandwidth-upload: 2MB');
  expect(resolveConfig(flags.settings, flags, {}, '/nowhere').bandwidth).toEqual({ uploadBytes: 2e6 });
});

describe('problems of a configuration file', () => {
  test.each([
    ['{"listen": "a:1"', 'line 1, column 17: flow map must end with a }'],
    ['listen: a:1\nuser: b: c', 'line 2, column 7: nested mappings are not allowed in compact mappings'],
    ['listen: *a', 'line 1, column 9: this alias names no anchor before it'],
    ['users: &a\n  - *a', 'line 2, column 5: this alias names no anchor before it'],
    ['', 'the file has no settings; write at least {}'],
    ['# nothing yet\n', 'the file has no settings; write at least {}'],
    ['- listen', 'line 1, column 1: the file must have keys and values, or braces: {}'],
    ['user: a\nuser: b', 'line 2, column 1: duplicate key "user" (first at line 1, column 1); remove one'],
    ['listen: 8765', 'line 1, column 9: "listen" must be a text in quotes'],
    ['token: true', 'line 1, column 8: "token" must be a text in quotes'],
    ['token:', 'line 1, column 7: "token" is empty; write a value or leave it out'],
    ['token: ""', '"token" in FILE, line 1, column 8: empty; write a value or leave it out'],
    ['no-auth: 1', 'line 1, column 10: "no-auth" must be true or false'],
    ['lisen: x', 'line 1, column 1: unknown key "lisen" (did you mean "listen"?)'],
    ['api_url: x', 'line 1, column 1: unknown key "api_url" (did you mean "api-url"?)'],
    ['user-list: x', 'line 1, column 1: unknown key "user-list"'],
    ['config: x', 'line 1, column 1: unknown key "config"'],
    ['drives: {}', 'line 1, column 9: "drives" is empty; name at least one, or leave it out'],
    [
      'drives: { "a b": {} }',
      `line 1, column 11: drive "a b": a drive's name is 1 to 64 letters, digits, "_" and "-"`,
    ],
    [
      'drives:\n  a:\n    listen: x',
      'line 3, column 5: "listen" is not a setting of a drive; write it at the top of the file',
    ],
    ['drives: { a: x }', 'line 1, column 14: drive "a" must have keys and values, or braces: {}'],
    ['bandwidth: { up: 1MB }', 'line 1, column 14: unknown key "up"; "bandwidth" has download, upload'],
    ['bandwidth: { upload: [] }', 'line 1, column 22: "upload" must be a size, like 10MB'],
    [
      'bandwidth-upload: 1MB\nbandwidth: { upload: 1MB }',
      '"bandwidth-upload" in FILE, line 1, column 19: "bandwidth" has the same limit; remove one',
    ],
    [
      'users: [{ name: ann, password: p, drive: a, bandwidth: { upload: 10B } }]',
      '"upload" in FILE, line 1, column 66: "10B" is not a size of 1kB or more, like 500kB or 10MB',
    ],
    [
      'users: [{ name: ann, password: p, drive: a, quota: 5 apples }]',
      'line 1, column 52: "quota" must be a size, like 500MB, 20GiB or 2TB',
    ],
    ['users: []', 'line 1, column 8: "users" must be a list of at least one user'],
    ['users:\n  - drive: a\n    password: p', 'line 2, column 5: this user has no "name"'],
    [
      'users:\n  - name: ann\n    drive: a\n    pasword: p',
      'line 4, column 5: unknown key "pasword" (did you mean "password"?); a user has name, password, password-hash, drive, root, drives, read-only, quota, folders, bandwidth',
    ],
    [
      'users: [{ name: ann, drive: a, password: p, password-hash: h }]',
      'line 1, column 9: user ann: write either "password" or "password-hash" (davgate hash-password makes one)',
    ],
    [
      'users:\n  - { name: ann, drive: a, password: p }\n  - { name: ann, drive: a, password: p }',
      'line 3, column 5: the user ann is listed twice',
    ],
    [
      'users:\n  - { name: René, drive: a, password: p }\n  - { name: Rene\u0301, drive: a, password: p }',
      'line 3, column 5: the user René is listed twice',
    ],
  ])('the file %j is refused with line, column and reason', async (content, problem) => {
    expect(await problemsOf(content)).toEqual([problem]);
  });

  test('all problems of a file are found at once', async () => {
    const content = `lisen: x
token: 1
drives:
  a: { rot: /x }
users:
  - { name: ann, drive: a, password: 1, admin: x }
  - { name: "bob:", drive: a, password: p }
`;
    expect(await problemsOf(content)).toEqual([
      'line 1, column 1: unknown key "lisen" (did you mean "listen"?)',
      'line 2, column 8: "token" must be a text in quotes',
      'line 4, column 8: unknown key "rot" (did you mean "root"?)',
      expect.stringMatching(/^line 6, column 41: unknown key "admin"/),
      'line 6, column 38: "password" must be a text in quotes',
      'line 7, column 13: "name" must be a name without a colon',
    ]);
    await expect(read(content)).rejects.toThrow(/ \(and 5 more: davgate config check lists them\)$/);
  });

  test('all values that cannot be used are found at once', async () => {
    const file = await read('listen: x\ndelete: never\ntrusted-proxy: y\n');
    const error = (() => {
      try {
        return resolveConfig(file.settings, file, {}, '/nowhere');
      } catch (thrown) {
        return thrown;
      }
    })();
    expect(error).toMatchObject({
      problems: [/"listen" in/, /"trusted-proxy" in/, /"delete" in/].map((name) =>
        expect.stringMatching(name),
      ),
    });
  });

  test('a UTF-16 file is refused with the encoding to save it with', async () => {
    expect(await problemsOf(Buffer.from('\uFEFFlisten: x', 'utf16le'))).toEqual([
      'the file is not UTF-8; save it with the encoding UTF-8',
    ]);
  });

  test.each([
    '{"token": "sl.SECRET',
    'token: !SECRET x',
    'token: "a\\SECRET"',
    'token: *SECRET',
    'token: |SECRET\n',
    'token: 1SECRET: b',
    '%SECRET x\n---\na: b',
    'password: "x" SECRET',
    'password: [SECRET',
    'password: {SECRET: 1}',
    'password: @SECRET',
    'password: `SECRET',
  ])('the refusal of %j does not quote the secret', async (content) => {
    expect((await problemsOf(content)).join('\n')).not.toContain('SECRET');
  });

  test('a missing file is refused with its path and error code', async () => {
    await expect(readConfigFile('/does/not/exist')).rejects.toThrow(
      /--config: cannot read \/does\/not\/exist \(ENOENT\)/,
    );
  });
});

test('settings of the service at the top of a file hold for all its drives, and a drive may have its own', async () => {
  const file = await read(`api-url: https://api.example
app-key: k
delete: trash
drives:
  a: { refresh-token: one }
  b: { refresh-token: two, delete: permanent, api-url: "http://other.example" }
users: [{ name: ann, password: p, drive: a }]
`);
  const { drives } = resolveConfig(file.settings, file, {}, '/nowhere');
  expect(drives).toMatchObject([
    {
      deletePolicy: 'trash',
      service: { apiUrl: 'https://api.example', credentials: { appKey: 'k', refreshToken: 'one' } },
    },
    {
      deletePolicy: 'permanent',
      service: { apiUrl: 'http://other.example', credentials: { refreshToken: 'two' } },
    },
  ]);
  const withVariable = new Map([
    ...file.settings,
    ['delete', { text: 'auto', origin: 'DAVGATE_DELETE' }] as const,
  ]);
  expect(() => resolveConfig(withVariable, file, {}, '/nowhere')).toThrow(/^DAVGATE_DELETE: .* has "drives"/);
});
