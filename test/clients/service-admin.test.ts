import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openDatabase } from '../../src/service/registry/database.ts';
import { appIn, valueAfter } from '../support/admin-output.ts';
import { PROJECT_ROOT } from '../support/build.ts';
import { command } from '../support/command.ts';
import { FormBrowser, tokenByConsent } from '../support/consent.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { rpc, send } from '../support/service-client.ts';

// The command works on the directory of a service that runs all the while, in another process.
let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.close());

interface Ran {
  readonly code: number | null;
  readonly said: string;
  readonly complaint: string;
}

async function run(words: string, input = '', data = service.dataDirectory): Promise<Ran> {
  const program = join(PROJECT_ROOT, 'dist/cli/main.js');
  const args = [program, 'service', ...words.split(' '), '--data', data];
  const { code, stdout, output } = await command(process.execPath, args, { input });
  return { code, said: stdout, complaint: output.slice(stdout.length) };
}

/** Runs a command that must succeed. Returns what it says. */
async function did(words: string, input = ''): Promise<string> {
  const { code, said, complaint } = await run(words, input);
  expect([code, complaint], words).toEqual([0, '']);
  return said;
}

const makeApp = async (options: string) => appIn(await did(`app create ${options}`));

const call = (token: string, name = 'users/get_current_account', argument: unknown = null) =>
  rpc(service, name, argument, { token });

const CALLBACK = 'http://localhost:53682/';

test('an app and an account that were just made are good at the service at once', async () => {
  const { key, secret } = await makeApp(
    `--name Sorter --scopes account_info.read --redirect-uri ${CALLBACK}`,
  );
  const made = await did('account create ann@example.org --given-name Ann');
  const token = await tokenByConsent(
    service,
    { key, secret, redirectUri: CALLBACK },
    'ann@example.org',
    valueAfter('password', made),
  );
  expect((await call(token)).json).toMatchObject({
    email: 'ann@example.org',
    name: { given_name: 'Ann' },
  });
  expect(await did(`app show ${key}`)).toMatch(/^users +1 of at most 50$/m);
  expect(await did('app list')).toMatch(new RegExp(`^${key} +Sorter +development +1$`, 'm'));
  expect(await did('account show ann@example.org')).toMatch(/^apps +Sorter$/m);
});

test('the first app and account may come before the first start of the service', async () => {
  const data = join(service.dataDirectory, 'before the start');
  const { said } = await run('account create first@example.org', '', data);
  expect(await run('app create --name First --scopes all', '', data)).toMatchObject({ code: 0 });
  const later = await startTestService({ dataDirectory: data });
  try {
    const browser = new FormBrowser(later);
    const key = valueAfter('app key', (await run('app create --name Second --scopes all', '', data)).said);
    await browser.open({ client_id: key, response_type: 'code' });
    const page = await browser.signIn('first@example.org', valueAfter('password', said));
    expect(page.text).toContain('Second wants access to your account');
  } finally {
    await later.close();
  }
});

test('commands and a service that is at work do not get into each other’s way', async () => {
  const { key, secret } = await makeApp('--name Busy --scopes all');
  const made = `token create --account drive@davgate.invalid --app ${key}`;
  const refreshToken = valueAfter('refresh token', await did(`${made} --refresh`));
  const form = { grant_type: 'refresh_token', refresh_token: refreshToken, client_id: key };
  const body = new URLSearchParams({ ...form, client_secret: secret });
  let isOver = false;
  const commands = Promise.all(Array.from({ length: 6 }, () => did(made))).finally(() => {
    isOver = true;
  });
  const statuses = new Set<number>();
  while (!isOver) statuses.add((await send(`${service.url}/oauth2/token`, { method: 'POST', body })).status);
  expect([...statuses]).toEqual([200]);
  const tokens = (await commands).map((said) => valueAfter('access token', said));
  for (const token of tokens) expect((await call(token)).status).toBe(200);
});

test('a database that another process does not let go of is said to be busy', async () => {
  const database = openDatabase(service.dataDirectory);
  try {
    database.exec('BEGIN IMMEDIATE');
    expect(await run('app create --name Late --scopes all')).toMatchObject({
      code: 2,
      complaint: expect.stringMatching(
        /^davgate: .*accounts\.sqlite is being written to by another process: try again\n$/,
      ),
    });
    expect((await run('app list')).code).toBe(0);
  } finally {
    database.close();
  }
});
