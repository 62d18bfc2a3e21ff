import { setImmediate } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { SCOPES, type Scope } from '../../src/service/accounts/scopes.ts';
import { expectSoon } from '../support/eventually.ts';
import { type Program, startProgram, temporaryDirectory } from '../support/program.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { rpc } from '../support/service-client.ts';

const BACK = ['--write-mode', 'back'];

let service: TestService;
let ann: string;
let bob: string;
let annsId: string;
beforeAll(async () => {
  service = await startTestService();
  annsId = addPerson('ann@example.org');
  ann = await tokenFor(annsId);
  bob = await tokenFor(addPerson('bob@example.org'));
});
afterAll(() => service.close());

let data: { readonly path: string; remove(): Promise<void> };
const started: Program[] = [];
beforeEach(async () => {
  data = await temporaryDirectory();
});
afterEach(async () => {
  service.service.setFaults({});
  for (const program of started.splice(0)) await program.kill();
  await data.remove();
});

function addPerson(email: string): string {
  const person = { email, givenName: 'A', surname: 'B', mayDeletePermanently: true };
  return service.service.addAccount(person).id;
}

function tokenFor(accountId: string, scopes: readonly Scope[] = SCOPES): Promise<string> {
  return service.service.grant({ accountId, scopes });
}

/** With what the data directory of the test holds. */
async function start(token: string, ...more: readonly string[]): Promise<Program> {
  const args = ['--api-url', service.url, '--token', token, ...more];
  const program = await startProgram({ dataDirectory: data.path, login: false, args });
  started.push(program);
  return program;
}

/** How it ends, with the one line that it says. */
async function refusal(token: string, ...more: readonly string[]): Promise<string> {
  const { message } = await start(token, ...more).then(
    () => new Error('it serves'),
    (error: Error) => error,
  );
  const [ended, line, ...rest] = message.trim().split('\n');
  expect([ended, rest]).toEqual(['davgate ended with 2:', []]);
  return line ?? '';
}

const put = (program: Program, name: string, body: string, headers = {}) =>
  fetch(`${program.url}${name}`, { method: 'PUT', body, headers });

const isThere = async (token: string, path: string) =>
  (await rpc({ ...service, token }, 'files/get_metadata', { path })).status === 200;

const WAITS =
  /^davgate: drive "default": 1 file in \S+ must still be sent to ann@example\.org \(dbid:[\w-]+\), but this login belongs to bob@example\.org \(dbid:[\w-]+\); run davgate with the old settings/;

/** Starts for Ann, has a file acknowledged that is not at the service, and kills it. */
async function leaveInJournal(name: string, ...more: readonly string[]): Promise<void> {
  const program = await start(ann, ...BACK, ...more);
  service.service.setFaults({ 'error-write-share': 1 });
  expect((await put(program, name, 'of Ann')).status).toBe(201);
  await program.kill();
  service.service.setFaults({});
}

async function untilSent(program: Program): Promise<void> {
  const waiting = async () =>
    ((await (await fetch(`${program.url}.davgate/healthz`)).json()) as { journalFiles: number }).journalFiles;
  await expectSoon(waiting).toBe(0);
}

test('writes in the journal are for the account they were made for', async () => {
  await leaveInJournal('report');
  expect(await refusal(bob, ...BACK)).toMatch(WAITS);
  // Nor in the other write mode, in which what is left is sent too.
  expect(await refusal(bob)).toMatch(WAITS);
  await untilSent(await start(ann));
  expect([await isThere(ann, '/report'), await isThere(bob, '/report')]).toEqual([true, false]);
  for (const program of started) await program.stop();
  // Nothing waits any more: the other account can be served.
  const next = await start(bob, ...BACK);
  expect((await put(next, 'of-bob', 'x')).status).toBe(201);
  await untilSent(next);
  expect([await isThere(ann, '/of-bob'), await isThere(bob, '/of-bob')]).toEqual([false, true]);
});

test('an empty file that waits for its body is', async () => {
  const headers = { 'user-agent': 'WebDAVFS/3.0.0 (03008000) Darwin/21.0.0' };
  expect((await put(await start(ann), 'first-half', '', headers)).status).toBe(201);
  await started[0]?.kill();
  expect(await refusal(bob)).toMatch(WAITS);
  expect(await (await start(ann)).stop()).toBe(0);
  expect([await isThere(ann, '/first-half'), await isThere(bob, '/first-half')]).toEqual([true, false]);
});

test('what waits for one folder of an account does not go into another', async () => {
  await rpc({ ...service, token: ann }, 'files/create_folder_v2', { path: '/Team' });
  await leaveInJournal('plan', '--root', '/Team');
  expect(await refusal(ann, ...BACK)).toMatch(
    /still be sent to ann@example\.org \(dbid:[\w-]+, folder \/Team\), but this login belongs to ann@example\.org \(dbid:[\w-]+\);/,
  );
  await untilSent(await start(ann, ...BACK, '--root', '/team'));
  expect([await isThere(ann, '/Team/plan'), await isThere(ann, '/plan')]).toEqual([true, false]);
});

test('locks and litter of one account are not shown in another, and are there when it comes back', async () => {
  const first = await start(ann);
  expect((await put(first, 'locked', 'of Ann')).status).toBe(201);
  expect((await put(first, '.DS_Store', 'of Ann')).status).toBe(201);
  const body =
    '<lockinfo xmlns="DAV:"><lockscope><exclusive/></lockscope><locktype><write/></locktype></lockinfo>';
  const locked = await fetch(`${first.url}locked`, { method: 'LOCK', body });
  expect(locked.status).toBe(200);
  await first.stop();

  const other = await start(bob);
  expect((await fetch(`${other.url}.DS_Store`)).status).toBe(404);
  expect((await put(other, 'locked', 'of Bob')).status).toBe(201);
  expect((await put(other, '.DS_Store', 'of Bob')).status).toBe(201);
  await other.stop();

  const again = await start(ann);
  expect(await (await fetch(`${again.url}.DS_Store`)).text()).toBe('of Ann');
  expect((await put(again, 'locked', 'without the token')).status).toBe(423);
});

test('a service that is away at the start is asked before anything is sent', async () => {
  await leaveInJournal('late');
  service.service.setFaults({ 'error-metadata-share': 1, 'error-write-share': 1 });
  const program = await start(bob, ...BACK);
  service.service.setFaults({});
  while (
    !/ error the login does not belong to the owner of the stored data; no calls are made /.test(
      program.output(),
    )
  )
    await setImmediate();
  expect((await put(program, 'new', 'x')).status).toBe(503);
  await program.stop();
  expect([await isThere(bob, '/late'), await isThere(bob, '/new')]).toEqual([false, false]);
  service.service.setFaults({ 'error-metadata-share': 1, 'error-write-share': 1 });
  const right = await start(ann, ...BACK);
  service.service.setFaults({});
  await untilSent(right);
  expect(await isThere(ann, '/late')).toBe(true);
});

test('a login that may not tell whose it is is refused where that was known, and warned of elsewhere', async () => {
  const scopes = SCOPES.filter((scope) => scope !== 'account_info.read');
  const silent = await tokenFor(annsId, scopes);
  const program = await start(silent);
  expect(program.output()).toContain('a change of the account will not be noticed');
  expect((await put(program, 'silent', 'x')).status).toBe(201);
  await program.stop();
  await (await start(ann)).stop();
  expect(await refusal(silent)).toMatch(
    /belongs to ann@example\.org .*; give its app the scope account_info\.read$/,
  );
});
