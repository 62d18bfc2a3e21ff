import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { csrfTokenOf } from '../../src/http/sessions.ts';
import { type Program, startProgram, temporaryDirectory } from '../support/program.ts';

// App passwords of users whose logins --auth-url checks.

/** The answers of the program that checks logins: ann gets less than her row has, bob names nothing. */
const ANSWERS = new Map<string | undefined, object>([
  [basic('ann:p'), { name: 'ann', drive: 'work', root: '/Ann', 'read-only': true }],
  [basic('bob:p'), {}],
]);

const checker = createServer(({ headers: { authorization } }, response) => {
  const answer = ANSWERS.get(authorization);
  if (!answer) response.writeHead(401).end();
  else response.setHeader('Content-Type', 'application/json').end(JSON.stringify(answer));
});

let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
let program: Program;

beforeAll(async () => {
  directory = await temporaryDirectory();
  checker.listen(0, '127.0.0.1');
  await once(checker, 'listening');
  const { port } = checker.address() as AddressInfo; // a port is an AddressInfo
  const config = join(directory.path, 'davgate.json');
  const users = ['ann', 'bob'].map((name) => ({ name, drive: 'work' }));
  const authUrl = `http://127.0.0.1:${port}/`;
  await writeFile(config, JSON.stringify({ 'auth-url': authUrl, drives: { work: {} }, users }));
  const dataDirectory = join(directory.path, 'data');
  program = await startProgram({ dataDirectory, login: 'configured', args: ['--config', config] });
});
afterAll(async () => {
  await program.stop();
  checker.closeAllConnections();
  checker.close();
  await directory.remove();
});

function basic(login: string): string {
  return `Basic ${Buffer.from(login).toString('base64')}`;
}

/** Signs in on the page. Returns a function that calls the functions of the web application. */
async function session(name: string) {
  const body = new URLSearchParams({ name, password: 'p' });
  const page = new URL('/.davgate/sign-in', program.url);
  const { headers } = await fetch(page, { method: 'POST', body, redirect: 'manual' });
  const cookie = (headers.get('set-cookie') ?? '').replace(/;.*/, '');
  const own = { cookie, 'x-csrf-token': csrfTokenOf(cookie.replace(/.*=/, '')) };
  return (action: string, values?: object) =>
    fetch(new URL(`/.davgate/api/${action}`, program.url), {
      method: values ? 'POST' : 'GET',
      headers: { ...own, ...(values && { 'content-type': 'application/json' }) },
      ...(values && { body: JSON.stringify(values) }),
    });
}

test('a user to whom --auth-url gives less than the configuration has can make no app password', async () => {
  const call = await session('ann');
  expect(await (await call('drive')).json()).toMatchObject({ user: 'ann', hasAppPasswords: false });
  expect((await call('make-app-password', { name: 'phone' })).status).toBe(403);
  expect((await call('app-passwords')).status).toBe(403);
});

test('a user to whom --auth-url gives what the configuration has makes an app password that logs in', async () => {
  const call = await session('bob');
  expect(await (await call('drive')).json()).toMatchObject({ user: 'bob', hasAppPasswords: true });
  const made = await call('make-app-password', { name: 'phone' });
  const { password } = (await made.json()) as { readonly password: string };
  const headers = { authorization: basic(`bob:${password}`) };
  expect((await fetch(program.url, { method: 'PROPFIND', headers })).status).toBe(207);
});
