import { once } from 'node:events';
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { hashOfPassword } from '../../src/service/accounts/secrets.ts';
import { addApp, FormBrowser, sentBack } from '../support/consent.ts';
import { freePort } from '../support/free-port.ts';
import {
  matchOutput,
  runProgram,
  spawnProgram,
  startProgram,
  temporaryDirectory,
} from '../support/program.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { rpc } from '../support/service-client.ts';

const EMAIL = 'ann@example.org';
const ANN = { email: EMAIL, password: 'correct horse' };
const BOB = { email: 'bob@example.org', password: 'battery staple' };

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
  for (const { email, password } of [ANN, BOB]) {
    const person = { email, givenName: 'Ann', surname: 'Other', mayDeletePermanently: false };
    await service.service.addAccount({ ...person, passwordHash: await hashOfPassword(password) });
  }
});
afterAll(() => service.close());

let data: { readonly path: string; remove(): Promise<void> };
beforeEach(async () => {
  data = await temporaryDirectory();
});
afterEach(() => data.remove());

/** Starts `davgate login`, opens the page that it prints, and signs in there. */
async function startLogin(appKey: string, person = ANN, ...args: string[]) {
  const { child, output } = spawnProgram(
    ['login', '--api-url', service.url, '--app-key', appKey, '--data-dir', data.path, ...args],
    process.env,
    'written',
  );
  const closed = once(child, 'close');
  const address = (await matchOutput(child, output, /https?:\/\/\S*authorize\S*/)) ?? '';
  const browser = new FormBrowser(service);
  await browser.open(new URL(address).searchParams);
  await browser.signIn(person.email, person.password);
  const ended = async () => {
    const [code] = await closed;
    return { code, output: output() };
  };
  return { child, browser, ended };
}

async function canRefresh({
  refreshToken,
  appKey,
}: {
  refreshToken: string;
  appKey: string;
}): Promise<boolean> {
  const form = { grant_type: 'refresh_token', refresh_token: refreshToken, client_id: appKey };
  const answer = await fetch(`${service.url}/oauth2/token`, {
    method: 'POST',
    body: new URLSearchParams(form),
  });
  expect([200, 400]).toContain(answer.status);
  return answer.ok;
}

const loginText = () => readFile(join(data.path, 'login.json'), 'utf8');

test('davgate login with a pasted code connects the account that davgate then serves, and --remove revokes the login', async () => {
  const { app } = await addApp(service, { name: 'Mount' });
  const { child, browser, ended } = await startLogin(app.key);
  await browser.press('allow');
  const code = /<output[^>]*>([\w-]+)<\/output>/.exec(browser.text)?.[1];
  child.stdin?.write(`  ${code}\n`);
  const login = await ended();
  expect(login.output).toContain(`Connected: Ann Other (${EMAIL})`);
  expect(login.code).toBe(0);
  const { refreshToken } = JSON.parse(await loginText());
  expect(login.output).not.toContain(refreshToken);
  expect((await stat(join(data.path, 'login.json'))).mode & 0o777).toBe(0o600);

  const program = await startProgram({ dataDirectory: data.path, login: false });
  const put = await fetch(`${program.url}of-ann`, { method: 'PUT', body: 'x' });
  expect(put.status).toBe(201);

  expect(program.output()).not.toContain(refreshToken);
  await program.stop();
  // The file is in Ann's account, and not in that of the service's own token.
  expect((await rpc(service, 'files/get_metadata', { path: '/of-ann' })).status).toBe(409);

  const removed = await runProgram(['login', '--remove', '--data-dir', data.path]);
  expect([removed.code, removed.output]).toEqual([0, 'The login was revoked and deleted.\n']);
  await expect(loginText()).rejects.toThrow('ENOENT');
  expect(await canRefresh({ refreshToken, appKey: app.key })).toBe(false);
  const nothing = await runProgram(['login', '--remove', '--data-dir', data.path]);
  expect([nothing.code, nothing.output]).toEqual([1, expect.stringContaining('no account is connected')]);
});

/** Runs `davgate login` to its end: allows access and pastes the code. */
async function connect(appKey: string, person: { email: string; password: string } = ANN) {
  const { child, browser, ended } = await startLogin(appKey, person);
  await browser.press('allow');
  child.stdin?.write(`${/<output[^>]*>([\w-]+)</.exec(browser.text)?.[1]}\n`);
  return ended();
}

test('davgate login prints the granted scopes and the missing ones, and does not store them', async () => {
  const scopes = ['account_info.read', 'files.metadata.read', 'files.content.read'] as const;
  const { app } = await addApp(service, { scopes: [...scopes] });
  const { code, output } = await connect(app.key);
  expect(code).toBe(0);
  expect(output).toMatch(
    /^Scopes granted: account_info\.read, files\.metadata\.read, files\.content\.read$/m,
  );
  const missing = [...output.matchAll(/^ {2}(\S+) +to /gm)].map(([, scope]) => scope);
  expect(missing).toEqual(['files.content.write', 'sharing.read', 'sharing.write', 'files.permanent_delete']);
  expect(JSON.parse(await loginText())).not.toHaveProperty('scopes');
});

test('davgate login accepts the connected account again with a new token, and refuses another account or service', async () => {
  const { app } = await addApp(service);
  expect((await connect(app.key)).code).toBe(0);
  const first = JSON.parse(await loginText());
  expect((await connect(app.key)).code).toBe(0);
  const second = JSON.parse(await loginText());
  expect(second.accountId).toBe(first.accountId);
  expect(second.refreshToken).not.toBe(first.refreshToken);
  expect(await canRefresh(first)).toBe(false);
  expect(await canRefresh(second)).toBe(true);

  const other = await connect(app.key, BOB);
  expect([other.code, other.output]).toEqual([
    1,
    expect.stringContaining('another account is connected, and stays connected'),
  ]);
  expect(JSON.parse(await loginText())).toEqual(second);
  expect(await canRefresh(second)).toBe(true);
  const elsewhere = await runProgram(['login', '--app-key', 'x', '--data-dir', data.path]);
  expect([elsewhere.code, elsewhere.output]).toEqual([
    2,
    expect.stringMatching(/is connected; run davgate login --remove first\n$/),
  ]);
});

test('davgate login is refused while davgate runs, and while a placeholder is not yet at the service', async () => {
  const { app } = await addApp(service);
  const args = ['--api-url', service.url, '--token', service.token];
  const program = await startProgram({ dataDirectory: data.path, login: false, args });
  const words = ['login', '--app-key', app.key, '--api-url', service.url, '--data-dir', data.path];
  const running = await runProgram(words);
  expect([running.code, running.output]).toEqual([
    1,
    expect.stringMatching(/^davgate: a davgate is running with .*; stop it first\n$/),
  ]);
  // The empty PUT of Finder makes a placeholder, which is stored on this machine only.
  const headers = { 'user-agent': 'WebDAVFS/3.0.0 (03008000) Darwin/21.0.0' };
  expect((await fetch(`${program.url}new`, { method: 'PUT', headers, body: '' })).status).toBe(201);
  await program.kill();
  const waiting = await runProgram(words);
  expect([waiting.code, waiting.output]).toEqual([
    1,
    expect.stringMatching(
      /^davgate: cannot change the account: files in .* that must still be sent to the current one: 1;/,
    ),
  ]);
  const next = await startProgram({ dataDirectory: data.path, login: false, args });
  expect(await next.stop()).toBe(0);
  expect((await connect(app.key)).code).toBe(0);
});

test('davgate login --redirect takes the code from the browser and connects the account', async () => {
  const uri = `http://localhost:${await freePort()}/`;
  const { app } = await addApp(service, { redirectUris: [uri] });
  const { browser, ended } = await startLogin(app.key, ANN, '--redirect', uri);
  const back = await browser.press('allow');
  const visit = await fetch(`${uri}?${new URLSearchParams(sentBack(back, uri))}`);
  expect(await visit.text()).toContain('You can close this page');
  expect(await ended()).toEqual({ code: 0, output: expect.stringContaining(`(${EMAIL})`) });
});

test('davgate login ends with exit code 1 and stores no login when access is declined', async () => {
  const uri = `http://localhost:${await freePort()}/`;
  const { app } = await addApp(service, { redirectUris: [uri] });
  const { browser, ended } = await startLogin(app.key, ANN, '--redirect', uri);
  const back = await browser.press('cancel');
  await fetch(`${uri}?${new URLSearchParams(sentBack(back, uri))}`);
  expect(await ended()).toEqual({
    code: 1,
    output: expect.stringContaining('davgate: access was declined\n'),
  });
  await expect(loginText()).rejects.toThrow('ENOENT');
});

test('davgate login with a wrong code ends with exit code 1 and does not print the code', async () => {
  const { app } = await addApp(service);
  const { child, ended } = await startLogin(app.key);
  child.stdin?.write('WRONG\n');
  const { code, output } = await ended();
  expect([code, output]).toEqual([1, expect.stringMatching(/refused the code, .* \(invalid_grant\)\n$/)]);
  expect(output).not.toContain('WRONG');
});

test('davgate login --remove keeps a login that cannot be revoked, and ends with exit code 1', async () => {
  const { app } = await addApp(service);
  const { child, browser, ended } = await startLogin(app.key);
  await browser.press('allow');
  child.stdin?.write(`${/<output[^>]*>([\w-]+)</.exec(browser.text)?.[1]}\n`);
  await ended();
  service.service.setFaults({ 'error-metadata-share': 1, 'error-write-share': 1 });
  const { code, output } = await runProgram(['login', '--remove', '--data-dir', data.path]);
  service.service.setFaults({});
  expect([code, output]).toEqual([1, expect.stringContaining('cannot revoke the login')]);
  expect(await loginText()).toContain(app.key);
});

// test/unit/cli/program.test.ts tests wrong usages without a process for each.
test('davgate login with a data directory that cannot be made ends with exit code 2 and one line with the reason', async () => {
  const words = ['login', '--app-key', 'x', '--data-dir', '/dev/null/nowhere'];
  const { code, output } = await runProgram(words);
  expect([code, output]).toEqual([
    2,
    expect.stringMatching(/^davgate: cannot store a login in the data directory/),
  ]);
  expect(output.trim().split('\n')).toHaveLength(1);
});

test('davgate login is refused with exit code 2 while DAVGATE_TOKEN is set, and does not print the token', async () => {
  const environment = { ...process.env, DAVGATE_TOKEN: 'SECRET' };
  const { code, output } = await runProgram(['login', '--app-key', 'x'], environment);
  expect([code, output]).toEqual([
    2,
    expect.stringMatching(/^davgate: DAVGATE_TOKEN: davgate serve uses this/),
  ]);
  expect(output).not.toContain('SECRET');
});
