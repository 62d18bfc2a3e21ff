import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openDatabase } from '../../src/service/directory/sqlite/database.ts';
import { appIn, printedValue } from '../support/admin-output.ts';
import { PROJECT_ROOT } from '../support/build.ts';
import { command } from '../support/command.ts';
import { FormBrowser, tokenByConsent } from '../support/consent.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { rpc, send } from '../support/service-client.ts';

// The commands run on the directory of a running service, in other processes.
let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.close());

interface Result {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

async function run(words: string, data = service.dataDirectory): Promise<Result> {
  const program = join(PROJECT_ROOT, 'dist/cli/main.js');
  const args = [program, 'service', ...words.split(' '), '--data', data];
  const { code, stdout, output } = await command(process.execPath, args);
  return { code, stdout, stderr: output.slice(stdout.length) };
}

/** Runs a command that must succeed. Returns its standard output. */
async function runSuccessfully(words: string, data = service.dataDirectory): Promise<string> {
  const { code, stdout, stderr } = await run(words, data);
  expect([code, stderr], words).toEqual([0, '']);
  return stdout;
}

const makeApp = async (options: string) => appIn(await runSuccessfully(`app create ${options}`));

const call = (token: string, name = 'users/get_current_account', argument: unknown = null) =>
  rpc(service, name, argument, { token });

const CALLBACK = 'http://localhost:53682/';

test('an app and an account made by commands work at the running service at once', async () => {
  const { key, secret } = await makeApp(
    `--name Sorter --scopes account_info.read --redirect-uri ${CALLBACK}`,
  );
  const made = await runSuccessfully('account create ann@example.org --given-name Ann');
  const token = await tokenByConsent(
    service,
    { key, secret, redirectUri: CALLBACK },
    'ann@example.org',
    printedValue('password', made),
  );
  expect((await call(token)).json).toMatchObject({
    email: 'ann@example.org',
    name: { given_name: 'Ann' },
  });
  expect(await runSuccessfully(`app show ${key}`)).toMatch(/^users +1 of at most 50$/m);
  expect(await runSuccessfully('app list')).toMatch(new RegExp(`^${key} +Sorter +development +1$`, 'm'));
  expect(await runSuccessfully('account show ann@example.org')).toMatch(/^apps +Sorter$/m);
});

test('an app and an account made before the first start of the service work after it', async () => {
  const data = join(service.dataDirectory, 'before the start');
  const account = await runSuccessfully('account create first@example.org', data);
  const first = appIn(await runSuccessfully('app create --name First --scopes all', data));
  const later = await startTestService({ dataDirectory: data });
  try {
    const browser = new FormBrowser(later);
    await browser.open({ client_id: first.key, response_type: 'code' });
    const page = await browser.signIn('first@example.org', printedValue('password', account));
    expect([page.status, page.text]).toEqual([
      200,
      expect.stringContaining('First wants access to your account'),
    ]);
  } finally {
    await later.close();
  }
});

test('six commands at once succeed while the service issues tokens, and their tokens work', async () => {
  const { key, secret } = await makeApp('--name Busy --scopes all');
  const made = `token create --account drive@davgate.invalid --app ${key}`;
  const refreshToken = printedValue('refresh token', await runSuccessfully(`${made} --refresh`));
  const form = { grant_type: 'refresh_token', refresh_token: refreshToken, client_id: key };
  const body = new URLSearchParams({ ...form, client_secret: secret });
  let isOver = false;
  const commands = Promise.all(Array.from({ length: 6 }, () => runSuccessfully(made))).finally(() => {
    isOver = true;
  });
  const statuses = new Set<number>();
  while (!isOver) statuses.add((await send(`${service.url}/oauth2/token`, { method: 'POST', body })).status);
  expect([...statuses]).toEqual([200]);
  const tokens = (await commands).map((stdout) => printedValue('access token', stdout));
  for (const token of tokens) expect((await call(token)).status).toBe(200);
});

test('a writing command on a database locked by another process ends with exit code 2 and "try again", and a reading one succeeds', async () => {
  const database = openDatabase(service.dataDirectory);
  try {
    database.exec('BEGIN IMMEDIATE');
    expect(await run('app create --name Late --scopes all')).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(
        /^davgate: .*accounts\.sqlite is being written to by another process: try again\n$/,
      ),
    });
    expect((await run('app list')).code).toBe(0);
  } finally {
    database.close();
  }
});
