import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { isStartFailure } from '../../../src/cli/start-failure.ts';
import { SCOPES } from '../../../src/service/accounts/scopes.ts';
import { openDatabase } from '../../../src/service/directory/sqlite/database.ts';
import { runAdmin } from '../../support/admin.ts';
import { appIn, printedValue } from '../../support/admin-output.ts';
import { FormBrowser, tokenByConsent } from '../../support/consent.ts';
import { startTestService, type TestService } from '../../support/service.ts';
import { download, put, rpc, send, upload } from '../../support/service-client.ts';

// The commands open the data directory of a running service by their own connection.
let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.close());

interface Ran {
  readonly output: string;
  readonly error: string;
}

/** Runs a command in this process. `test/clients` runs it in a process of its own. */
async function run(words: string, input = '', data = service.dataDirectory): Promise<Ran> {
  const { output, error } = await runAdmin(words.split(' '), { data, input });
  if (error === undefined) return { output, error: '' };
  if (!isStartFailure(error)) throw error;
  return { output, error: error.message };
}

/** Runs a command that must succeed. Returns its output. */
async function did(words: string, input = ''): Promise<string> {
  const { output, error } = await run(words, input);
  expect(error, words).toBe('');
  return output;
}

const makeApp = async (options: string) => appIn(await did(`app create ${options}`));

const call = (token: string, name = 'users/get_current_account', argument: unknown = null) =>
  rpc(service, name, argument, { token });

const CALLBACK = 'http://localhost:53682/';

describe('commands for apps', () => {
  test('app set changes the values that are named and no others', async () => {
    const { key, secret } = await makeApp(`--name One --scopes sharing.write --redirect-uri ${CALLBACK}`);
    expect(await did(`app show ${key}`)).toMatch(/^scopes +sharing\.write$/m);
    await did(
      `app set ${key} --status applied --redirect-uri https://a.example/cb --redirect-uri org.example.app:/cb`,
    );
    const shown = await did(`app show ${key}`);
    expect(shown).toMatch(/^users +0 of at most 500$/m);
    expect(shown.match(/^redirect URI +(\S+)$/gm)?.map((line) => line.split(/ +/).at(-1))).toEqual([
      'https://a.example/cb',
      'org.example.app:/cb',
    ]);
    expect(shown).toMatch(/^name +One$/m);
    expect(shown).not.toContain(secret);
    await did(`app set ${key} --status production --no-redirect-uris --name Two`);
    expect(await did(`app show ${key}`)).toMatch(
      /name +Two\nstatus +production\nusers +0\n.*\nredirect URI +none$/m,
    );
  });

  test('app create and app set give an app exactly the scopes named, and print them', async () => {
    const made = await did('app create --name Narrow --scopes sharing.write,files.metadata.write');
    expect(made).toMatch(/^scopes +files\.metadata\.write sharing\.write$/m);
    const { key } = appIn(made);
    const changed = await did(`app set ${key} --scopes files.content.write`);
    expect(changed).toMatch(/^scopes +files\.content\.write$/m);
    expect(await did(`app show ${key}`)).toMatch(/^scopes +files\.content\.write$/m);
  });

  test('app set that removes a scope removes it from existing tokens', async () => {
    const { key } = await makeApp('--name Loser --scopes account_info.read,files.metadata.read');
    const token = printedValue(
      'access token',
      await did(`token create --account drive@davgate.invalid --app ${key}`),
    );
    expect((await call(token, 'files/list_folder', { path: '' })).status).toBe(200);
    await did(`app set ${key} --scopes account_info.read`);
    const answered = await call(token, 'files/list_folder', { path: '' });
    expect([answered.status, answered.text]).toEqual([
      400,
      expect.stringContaining("does not have the required scope 'files.metadata.read'"),
    ]);
    expect((await call(token)).status).toBe(200);
  });

  test('app set --new-secret makes the old secret invalid', async () => {
    const { key, secret } = await makeApp('--name Leaky --scopes account_info.read');
    const renewed = printedValue('app secret', await did(`app set ${key} --new-secret`));
    expect(renewed).not.toBe(secret);
    const check = (one: string) =>
      send(`${service.url}/2/check/app`, {
        method: 'POST',
        headers: {
          authorization: `Basic ${Buffer.from(`${key}:${one}`).toString('base64')}`,
          'content-type': 'application/json',
        },
        body: '{}',
      });
    expect([(await check(secret)).status, (await check(renewed)).status]).toEqual([401, 200]);
  });

  test('app remove revokes the app’s tokens and no others', async () => {
    const { key } = await makeApp('--name Gone --scopes account_info.read');
    const token = printedValue(
      'access token',
      await did(`token create --account drive@davgate.invalid --app ${key}`),
    );
    expect((await call(token)).status).toBe(200);
    await did(`app remove ${key}`);
    expect((await call(token)).status).toBe(401);
    expect(await did('app list')).not.toContain(key);
    expect((await call(service.token)).status).toBe(200);
  });
});

describe('commands for accounts', () => {
  const space = async (token: string) =>
    ((await call(token, 'users/get_space_usage')).json as { allocation: { allocated: number } }).allocation
      .allocated;

  test('account create and account set name an account by its given names, or by its address', async () => {
    await did('account create plain@example.org');
    await did('account create full@example.org --given-name Ann --surname Other');
    const nameOf = async (email: string) => {
      const words = `token create --account ${email} --app ${service.appKey}`;
      const { json } = await call(printedValue('access token', await did(words)));
      return (json as { name: { display_name: string } }).name.display_name;
    };
    expect(await nameOf('plain@example.org')).toBe('plain');
    expect(await nameOf('full@example.org')).toBe('Ann Other');
    await did('account set full@example.org --given-name Anna');
    expect(await nameOf('full@example.org')).toBe('Anna Other');
  });

  test('account set --quota and --permanent-delete take effect at the next call', async () => {
    await did('account create small@example.org --quota 1KB --permanent-delete yes');
    const { key } = await makeApp('--name Space --scopes all');
    const token = printedValue(
      'access token',
      await did(`token create --account small@example.org --app ${key}`),
    );
    expect(await space(token)).toBe(1000);
    const write = (body: string) => upload(service, 'files/upload', { path: '/a' }, { token, body });
    expect((await write('x'.repeat(1001))).json).toMatchObject({
      error: { reason: { '.tag': 'insufficient_space' } },
    });
    await did('account set small@example.org --quota 2KiB');
    expect(await space(token)).toBe(2048);
    expect((await write('x'.repeat(1001))).status).toBe(200);
    expect((await call(token, 'files/permanently_delete', { path: '/a' })).status).toBe(200);
    await did('account set small@example.org --permanent-delete no');
    expect((await call(token, 'files/permanently_delete', { path: '/a' })).text).toContain(
      'Your API app is not allowed to call this function.',
    );
    expect(await did('account list')).toMatch(/^small@example\.org +small +2\.0 kB$/m);
  });

  test('account set with a new password signs out browsers and makes the old password invalid', async () => {
    await did('account create pass@example.org --password-stdin', 'first password');
    const { key, secret } = await makeApp(
      `--name Pass --scopes account_info.read --redirect-uri ${CALLBACK}`,
    );
    const request = { client_id: key, response_type: 'code', redirect_uri: CALLBACK };
    const browser = new FormBrowser(service);
    await browser.open(request);
    expect((await browser.signIn('pass@example.org', 'first password')).text).toContain('wants access');
    await did('account set PASS@example.org --password-stdin', 'second password');
    expect((await browser.open(request)).text).toContain('Sign in to go on');
    expect((await browser.signIn('pass@example.org', 'first password')).status).toBe(403);
    const third = printedValue('password', await did('account set pass@example.org --new-password'));
    expect(
      (
        await call(
          await tokenByConsent(service, { key, secret, redirectUri: CALLBACK }, 'pass@example.org', third),
        )
      ).status,
    ).toBe(200);
  });
});

describe('commands for tokens', () => {
  const numberOf = async (app: string) =>
    new RegExp(`^(\\d+) .* ${app} `, 'm').exec(await did('token list'))?.[1] ?? '';

  test('a token of token create works within its scopes until token revoke', async () => {
    const { key } = await makeApp('--name Few --scopes all');
    const words = `token create --account drive@davgate.invalid --app ${key} --scopes files.content.write`;
    const token = printedValue('access token', await did(words));
    await put({ ...service, token }, '/by-token', 'x');
    expect((await call(token)).json).toMatchObject({ error: { required_scope: 'account_info.read' } });
    const listed = await did(`token list --app ${key}`);
    expect(listed).toMatch(
      /^\d+ +access +drive@davgate\.invalid +Few +\d{4}-\d\d-\d\d \d\d:\d\dZ +when revoked +files\.content\.write$/m,
    );
    expect(listed).not.toContain(token);
    await did(`token revoke ${await numberOf('Few')}`);
    expect((await call(token)).status).toBe(401);
  });

  test('a token of token create with files.content.write alone cannot read files, and the command prints its scopes', async () => {
    const { key } = await makeApp('--name Dropper --scopes all');
    const words = `token create --account drive@davgate.invalid --app ${key} --scopes files.content.write`;
    const output = await did(words);
    expect(output).toMatch(/^scopes +files\.content\.write$/m);
    const token = printedValue('access token', output);
    await put({ ...service, token }, '/dropped', 'x');
    const { status, json } = await download(service, '/dropped', { token });
    expect([status, json]).toMatchObject([401, { error: { required_scope: 'files.content.read' } }]);
  });

  test('token create makes a token that expires after --hours, or a refresh token', async () => {
    const { key, secret } = await makeApp('--name Ends --scopes account_info.read');
    const words = `token create --account drive@davgate.invalid --app ${key}`;
    const short = printedValue('access token', await did(`${words} --hours 0.000000001`));
    const refreshToken = printedValue('refresh token', await did(`${words} --refresh`));
    expect((await call(short)).json).toMatchObject({ error: { '.tag': 'expired_access_token' } });
    expect(await did(`token list --app ${key}`)).toMatch(
      /^\d+ +refresh .* when revoked +account_info\.read$/m,
    );
    const form = { grant_type: 'refresh_token', refresh_token: refreshToken, client_id: key };
    const body = new URLSearchParams({ ...form, client_secret: secret });
    const answered = await send(`${service.url}/oauth2/token`, { method: 'POST', body });
    expect((await call((answered.json as { access_token: string }).access_token)).status).toBe(200);
  });

  test('token create for a user above the app’s limit is refused', async () => {
    const { key } = await makeApp('--name Crowd --scopes account_info.read');
    const database = openDatabase(service.dataDirectory);
    database.exec(`
      WITH RECURSIVE number(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < 50)
      INSERT INTO accounts (account_id, namespace, email, given_name, surname, may_delete_permanently)
        SELECT 'dbid:crowd' || n, 'crowd' || n, 'crowd' || n || '@example.org', '', '', 0 FROM number;
      INSERT INTO grants (account_id, app_key, scopes)
        SELECT account_id, '${key}', '' FROM accounts WHERE account_id LIKE 'dbid:crowd%'`);
    database.close();
    expect(await did(`app show ${key}`)).toMatch(/^users +50 of at most 50$/m);
    const words = `token create --account drive@davgate.invalid --app ${key}`;
    expect(await run(words)).toMatchObject({
      error: expect.stringContaining('has as many users as its status (development) allows'),
    });
    await did(`token create --account crowd7@example.org --app ${key}`);
    await did(`app set ${key} --status applied`);
    await did(words);
  });
});

describe('errors of the commands', () => {
  test.each([
    ['app sell', 'app sell: no such command'],
    ['app create --scopes all', '--name is missing'],
    ['app create --name X', '--scopes is missing'],
    [
      'app create --name X --scopes files.read',
      '--scopes files.read: no such scope; the scopes are account_info.read,',
    ],
    [
      'app create --name X --scopes all --status beta',
      '--status beta: must be development, applied, production',
    ],
    ['app create --name X --scopes all --redirect-uri http://a.example/', 'must begin with https://'],
    ['app create --name X --scopes all --redirect-uri javascript:alert(1)', 'must begin with https://'],
    ['app create --name X --scopes all --redirect-uri https://a.example/#x', 'has a fragment'],
    ['app create --name X --scopes all --redirect-uri https://u:p@a.example/', 'contains a user name'],
    ['app create --name X --scopes all --redirect-uri nowhere', 'is not an absolute URL'],
    [
      'app create --name X --scopes all --colour red',
      '--colour: no such option; davgate service app create --help lists them',
    ],
    ['app show', 'write davgate service app show KEY'],
    ['app show x', 'no app has the key x'],
    ['app set x --name Y', 'no app has the key x'],
    ['account create nobody', 'nobody: not an email address'],
    ['account create drive@davgate.invalid', 'already has an account'],
    ['account create DRIVE@davgate.invalid', 'already has an account'],
    ['account create new@example.org --quota much', '--quota much: not a size'],
    ['account create new@example.org --permanent-delete maybe', 'must be yes or no'],
    ['account create new@example.org --password-stdin', 'at least 8 characters'],
    ['account set drive@davgate.invalid', 'nothing to change'],
    ['account set new@example.org --new-password', 'new@example.org has no account'],
    ['token create', '--account is missing'],
    ['token create --account drive@davgate.invalid --app x', 'no app has the key x'],
    [
      'token create --account drive@davgate.invalid --app APPKEY --hours 0',
      '--hours 0: must be a number above 0',
    ],
    [
      'token create --account drive@davgate.invalid --app APPKEY --hours 2400000000',
      '--hours 2400000000: must be at most 876000, a hundred years; without --hours, the token is valid until it is revoked',
    ],
    [
      `token create --account drive@davgate.invalid --app APPKEY --hours ${'9'.repeat(400)}`,
      'must be at most 876000',
    ],
    ['token revoke x', 'no token has the number x'],
    ['token revoke 999999', 'no token has the number 999999'],
  ])('davgate service %s fails with one line', async (words, text) => {
    const { output, error } = await run(words.replace('APPKEY', service.appKey), 'short');
    expect(output).toBe('');
    expect(error).toContain(text);
    expect(error.split('\n')).toHaveLength(1);
  });
});

test('commands on a folder without a service fail with its name and create nothing', async () => {
  const data = join(service.dataDirectory, 'nothing here');
  for (const words of ['app list', 'account list', 'token list', 'app show x']) {
    expect(await run(words, '', data)).toMatchObject({
      error: `${data} contains no storage service; name the service's directory with --data DIR`,
    });
  }
  expect(existsSync(data)).toBe(false);
});

test('each command has a --help with its usage', async () => {
  for (const noun of ['app', 'account', 'token']) {
    const group = await did(`${noun} --help`);
    const names = Array.from(
      group.matchAll(/^ {2}(create|list|show|set|remove|revoke)\b/gm),
      ([, verb = '']) => `${noun} ${verb}`,
    );
    expect(names.length).toBeGreaterThanOrEqual(3);
    for (const name of names) expect(await did(`${name} --help`)).toContain(`Usage: davgate service ${name}`);
  }
});

test.each(['app create', 'app set', 'token create'])(
  '%s --help says that a write scope does not include the read scope, and names all scopes',
  async (name) => {
    const help = (await did(`${name} --help`)).replaceAll(/\s+/g, ' ');
    expect(help).toContain('X.write does not include X.read');
    for (const scope of SCOPES) expect(help).toContain(scope);
  },
);
