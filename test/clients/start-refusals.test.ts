import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { freePort } from '../support/free-port.ts';
import { runProgram, startProgram, temporaryDirectory } from '../support/program.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { put, rpc } from '../support/service-client.ts';

let service: TestService;
let data: Awaited<ReturnType<typeof temporaryDirectory>>;
beforeAll(async () => {
  service = await startTestService();
  await put(service, '/a file', 'x');
  data = await temporaryDirectory();
});
afterAll(async () => {
  await service.close();
  await data.remove();
});

type Login = Readonly<Record<string, string>>;

/** Starts davgate, which must end with exit code 2 and one line; returns that line. */
async function refusal(login: Login, args: readonly string[] = [], { url } = service): Promise<string> {
  const place = ['--listen', '127.0.0.1:0', '--data-dir', data.path, '--api-url', url];
  const { code, output } = await runProgram([...place, ...args], { ...process.env, ...login });
  const [line = '', ...more] = output.trim().split('\n');
  expect([code, more]).toEqual([2, []]);
  return line;
}

test('a refused access token ends the start with exit code 2 and says where a token comes from', async () => {
  const line = await refusal({ DAVGATE_TOKEN: 'sl.WRONG-TOKEN' });
  expect(line).toMatch(/^davgate: drive "default": .* refused the login: .*; give a new access token/);
  expect(line).toContain('davgate login');
  expect(line).not.toContain('WRONG-TOKEN');
});

test('a wrong app key ends the start with exit code 2 and names the key’s variable', async () => {
  const login = { DAVGATE_APP_KEY: 'wrong', DAVGATE_REFRESH_TOKEN: service.refreshToken };
  expect(await refusal(login)).toMatch(/invalid_client.*; check DAVGATE_APP_KEY and DAVGATE_APP_SECRET$/);
});

test('a revoked refresh token ends the start with exit code 2 and says to log in again', async () => {
  // A service of its own, because revoking a token ends the others of the app and account too.
  const revoking = await startTestService();
  onTestFinished(() => revoking.close());
  const { appKey, appSecret, refreshToken } = revoking;
  const form = { grant_type: 'refresh_token', refresh_token: refreshToken };
  const issued = await fetch(`${revoking.url}/oauth2/token`, {
    method: 'POST',
    body: new URLSearchParams({ ...form, client_id: appKey, client_secret: appSecret }),
  });
  const { access_token: token } = (await issued.json()) as { access_token: string };
  expect((await rpc({ ...revoking, token }, 'auth/token/revoke', null)).status).toBe(200);
  const login = {
    DAVGATE_APP_KEY: appKey,
    DAVGATE_APP_SECRET: appSecret,
    DAVGATE_REFRESH_TOKEN: refreshToken,
  };
  const line = await refusal(login, [], revoking);
  expect(line).toMatch(/invalid_grant.*; .*davgate login/);
  expect(line).not.toContain(refreshToken);
});

test('a root that does not exist or is a file ends the start with exit code 2 and names --root', async () => {
  const login = { DAVGATE_TOKEN: service.token };
  expect(await refusal(login, ['--root', '/Nope'])).toMatch(
    /^davgate: drive "default": the account \S+ has no folder \/Nope; correct --root/,
  );
  expect(await refusal(login, ['--root', '/a file'])).toMatch(/\/a file is a file.*; correct --root/);
});

test('a start that cannot write its state opens nothing of the embedded service', async () => {
  const own = await temporaryDirectory();
  onTestFinished(() => own.remove());
  await writeFile(join(own.path, 'state'), 'a file in place of the folder');
  const { code, output } = await runProgram(['--listen', '127.0.0.1:0', '--data-dir', own.path], process.env);
  expect([code, output]).toEqual([2, expect.stringContaining('state')]);
  expect(await readdir(own.path)).not.toContain('service');
});

test('davgate starts and answers healthz while its service is away', async () => {
  const away = `http://127.0.0.1:${await freePort()}`;
  const args = ['--api-url', away, '--token', 't', '--root', '/Team'];
  const program = await startProgram({ dataDirectory: data.path, login: false, args });
  expect((await fetch(new URL('.davgate/healthz', program.url))).status).toBe(200);
  expect(await program.stop()).toBe(0);
});
