import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { copyFile, readFile, rename, stat, writeFile } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { Agent, request } from 'node:https';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { connect } from 'node:tls';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { openSqliteState } from '../../src/state/sqlite/state.ts';
import { PROJECT_ROOT } from '../support/build.ts';
import { pseudoRandomBytes } from '../support/bytes.ts';
import { eventually } from '../support/eventually.ts';
import {
  cheapHash,
  matchOutput,
  spawnProgram,
  startProgram,
  temporaryDirectory,
} from '../support/program.ts';
import { onTerminal } from '../support/terminal.ts';

let home: Awaited<ReturnType<typeof temporaryDirectory>>;
/** A davgate that all tests reload. */
let program: ReturnType<typeof spawnProgram>;
let port: number;
beforeAll(async () => {
  home = await temporaryDirectory();
  await useCertificate('one');
  await configure(['ann', 'bob']);
  const place = ['--listen', '127.0.0.1:0', '--data-dir', file('data'), '--cache-dir', file('cache')];
  program = spawnProgram(['--config', CONFIG(), ...place]);
  await matchOutput(program.child, program.output, /Ctrl\+C/);
  port = Number(/https:\/\/127\.0\.0\.1:(\d+)/.exec(program.output())?.[1]);
});
afterAll(async () => {
  const { child } = program;
  child.kill('SIGTERM');
  await once(child, 'close');
  await home.remove();
});

const agents: Agent[] = [];
/** Whether the test has changed the configuration. */
let isChanged = false;
afterEach(async () => {
  for (const agent of agents.splice(0)) agent.destroy();
  if (!isChanged) return;
  await useCertificate('one');
  await configure(['ann', 'bob']);
  await hangUp(RELOADED);
  isChanged = false;
});

const file = (name: string) => join(home.path, name);
const CONFIG = () => file('davgate.json');

/** Returns a user of the configuration. The file has the hash of the password. */
function hashed(name: string, password = `${name}s word`, drive = 'one') {
  return { name, 'password-hash': cheapHash(password), drive };
}

/** Writes the configuration. Each user's password is the name followed by `s word`. */
async function configure(users: readonly string[], more: object = {}): Promise<void> {
  const rows = users.map((name) => hashed(name));
  isChanged = true;
  const tls = { 'tls-cert': file('cert.pem'), 'tls-key': file('key.pem') };
  await writeFile(CONFIG(), JSON.stringify({ drives: { one: {} }, users: rows, ...tls, ...more }));
}

async function useCertificate(name: 'one' | 'other'): Promise<void> {
  const from = (kind: string) => join(PROJECT_ROOT, 'test/support/certificates', `${name}.${kind}`);
  await copyFile(from('pem'), file('cert.pem'));
  await copyFile(from('key'), file('key.pem'));
}

/** Returns a client of this user that keeps its one connection. */
function client(user: string) {
  const agent = new Agent({ keepAlive: true, maxSockets: 1, rejectUnauthorized: false });
  agents.push(agent);
  const authorization = `Basic ${Buffer.from(`${user}:${user}s word`).toString('base64')}`;
  return async (method: string, path: string, body?: Buffer): Promise<IncomingMessage> => {
    const outgoing = request({ host: '127.0.0.1', port, path, method, agent, headers: { authorization } });
    outgoing.end(body);
    const [answer] = (await once(outgoing, 'response')) as [IncomingMessage]; // 'response' passes the answer
    return answer;
  };
}

async function statusOf(ask: ReturnType<typeof client>, path = '/'): Promise<number | undefined> {
  const answer = await ask('GET', path);
  await buffer(answer);
  return answer.statusCode;
}

/** Signs a browser in by the form of the page. Returns a function that asks for the status with its cookie. */
async function browser(user: string): Promise<() => Promise<number | undefined>> {
  const agent = new Agent({ rejectUnauthorized: false });
  agents.push(agent);
  const send = async (method: string, path: string, headers: Record<string, string>, body?: string) => {
    const outgoing = request({ host: '127.0.0.1', port, path, method, agent, headers });
    outgoing.end(body);
    const [answer] = (await once(outgoing, 'response')) as [IncomingMessage]; // 'response' passes the answer
    return answer.resume();
  };
  const form = { 'content-type': 'application/x-www-form-urlencoded' };
  const fields = new URLSearchParams({ name: user, password: `${user}s word` });
  const { headers } = await send('POST', '/.davgate/sign-in', form, String(fields));
  const [cookie = ''] = headers['set-cookie'] ?? [];
  expect(cookie).toMatch(
    /^__Host-davgate-session-\d+=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; Secure$/,
  );
  return async () => (await send('GET', '/', { cookie: cookie.replace(/;.*/, '') })).statusCode;
}

/** Returns the fingerprint of the certificate that a new connection gets. */
async function shownCertificate(): Promise<string> {
  const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false });
  await once(socket, 'secureConnect');
  const { fingerprint256 } = socket.getPeerCertificate();
  socket.destroy();
  return fingerprint256;
}

/** Sends SIGHUP; resolves when the log has `pattern` once more than before. */
async function hangUp(pattern: RegExp): Promise<void> {
  const count = () => program.output().split(pattern).length;
  const before = count();
  program.child.kill('SIGHUP');
  await eventually(() => expect(count()).toBeGreaterThan(before));
}

const RELOADED = /configuration reloaded/;
const REFUSED = /cannot reload the configuration; the previous one stays in force/;

test('SIGHUP reloads users and certificate while a download goes on', async () => {
  const ann = client('ann');
  const bob = client('bob');
  const bytes = pseudoRandomBytes(24 * 2 ** 20, 7);
  expect((await ann('PUT', '/film', bytes)).resume().statusCode).toBe(201);
  expect(await statusOf(bob)).toBe(200);
  const before = await shownCertificate();

  const download = await client('ann')('GET', '/film');
  await once(download, 'readable');
  await useCertificate('other');
  await configure(['ann', 'carol']);
  await hangUp(RELOADED);

  expect(await statusOf(client('carol'))).toBe(200);
  // Also on the connection on which bob was authenticated before.
  expect(await statusOf(bob)).toBe(401);
  expect(await statusOf(ann)).toBe(200);
  expect(await shownCertificate()).not.toBe(before);
  expect((await buffer(download)).equals(bytes)).toBe(true);
});

test('SIGHUP with a changed password refuses the old one at the next request', async () => {
  const ann = client('ann');
  expect(await statusOf(ann)).toBe(200);
  await configure([], { users: [hashed('ann', 'another')] });
  await hangUp(RELOADED);
  expect(await statusOf(ann)).toBe(401);
});

test('SIGHUP keeps browsers signed in whose users keep their password, and signs out those of changed and removed users', async () => {
  // With a clear password davgate makes a new hash at each reload, unless it finds that the password is the same.
  const clear = { name: 'ann', password: 'anns word', drive: 'one' };
  await configure([], { users: [clear, hashed('bob')] });
  await hangUp(RELOADED);
  const [ann, bob] = [await browser('ann'), await browser('bob')];
  expect([await ann(), await bob()]).toEqual([200, 200]);
  await configure([], { users: [clear, hashed('carol')] });
  await hangUp(RELOADED);
  expect([await ann(), await bob()]).toEqual([200, 401]);
  await configure([], { users: [hashed('ann', 'another')] });
  await hangUp(RELOADED);
  expect(await ann()).toBe(401);
});

test.each([
  [
    'a broken configuration file',
    () => writeFile(CONFIG(), '{'),
    /reason="cannot read .*: line 1, column 2: /,
  ],
  ['a certificate without its key', () => writeFile(file('key.pem'), ''), /reason="cannot serve https with/],
  [
    'a log file in no folder',
    () => configure(['carol'], { 'log-file': file('no folder/log') }),
    /reason="--log-file: cannot open .*no folder\/log \(ENOENT\); make its folder, or change the permissions"/,
  ],
  [
    'a user without a usable hash',
    () => configure([], { users: [{ ...hashed('eve'), 'password-hash': 'x' }] }),
    /reason="user eve: not a password hash/,
  ],
])('SIGHUP with %s changes nothing and logs why', async (_what, spoil, reason) => {
  const before = await shownCertificate();
  await configure(['carol']);
  await spoil();
  await hangUp(REFUSED);
  expect(program.output()).toMatch(reason);
  expect(await statusOf(client('bob'))).toBe(200);
  expect(await statusOf(client('carol'))).toBe(401);
  expect(await shownCertificate()).toBe(before);
});

test('SIGHUP names the settings that wait for the next start, and leaves out users whose drive does not run', async () => {
  const users = ['one', 'two'].map((drive) => hashed(drive, `${drive}s word`, drive));
  await configure([], { users, drives: { one: {}, two: {} }, 'write-mode': 'back' });
  await hangUp(RELOADED);
  await eventually(() =>
    expect(program.output()).toMatch(/only at the next start settings="write-mode, drive two"/),
  );
  expect(await statusOf(client('one'))).toBe(200);
  expect(await statusOf(client('two'))).toBe(401);
});

test('the log goes to a file that only its owner can read, and after a rename SIGHUP makes a new one', async () => {
  const log = file('davgate.log');
  const linesOf = async (name: string) => (await readFile(name, 'utf8')).trim().split('\n');
  const hasReloaded = () => eventually(async () => expect((await linesOf(log)).at(-1)).toMatch(RELOADED));
  await configure(['ann'], { 'log-file': log });
  program.child.kill('SIGHUP');
  await hasReloaded();
  expect((await stat(log)).mode & 0o777).toBe(0o600);
  await statusOf(client('ann'), '/logged');
  await eventually(async () => expect((await linesOf(log)).at(-1)).toContain('/logged'));
  await rename(log, `${log}.1`);
  program.child.kill('SIGHUP');
  await hasReloaded();
  expect(await linesOf(log)).toHaveLength(1);
  expect(program.output()).not.toContain('/logged');
});

test('SIGHUP does not end a davgate that has no configuration file and no user', async () => {
  const other = await startProgram({ dataDirectory: file('open'), login: false });
  process.kill(other.pid, 'SIGHUP');
  await eventually(() => expect(other.output()).toMatch(RELOADED));
  expect((await fetch(`${other.url}.davgate/healthz`)).status).toBe(200);
  expect(await other.stop()).toBe(0);
});

test('closing its terminal ends davgate, which removes its control socket and closes its state', async () => {
  const data = file('closed');
  const terminal = onTerminal(['--listen', '127.0.0.1:0', '--data-dir', data, '--cache-dir', file('cache')]);
  await terminal.shows(/Ctrl\+C/);
  // A davgate that is killed leaves its socket.
  const socket = join(data, 'state/control.sock');
  expect(existsSync(socket)).toBe(true);
  terminal.close();
  await eventually(() => expect(existsSync(socket)).toBe(false));
  // The state is closed last.
  await eventually(() => openSqliteState({ directory: join(data, 'state') }).close());
});
