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
  annsId = await addPerson('ann@example.org');
  ann = await tokenFor(annsId);
  bob = await tokenFor(await addPerson('bob@example.org'));
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

async function addPerson(email: string): Promise<string> {
  const person = { email, givenName: 'A', surname: 'B', mayDeletePermanently: true };
  return (await service.service.addAccount(person)).id;
}

function tokenFor(accountId: string, scopes: readonly Scope[] = SCOPES): Promise<string> {
  return service.service.grant({ accountId, scopes });
}

/** Starts davgate on the data directory of the test. */
async function start(token: string, ...more: readonly string[]): Promise<Program> {
  const args = ['--api-url', service.url, '--token', token, ...more];
  const program = await startProgram({ dataDirectory: data.path, login: false, args });
  started.push(program);
  return program;
}

/** Starts davgate, which must end with exit code 2 and one line; returns that line. */
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

const PENDING_REFUSAL =
  /^davgate: drive "default": 1 file in \S+ must still be sent to ann@example\.org \(dbid:[\w-]+\), but this login belongs to bob@example\.org \(dbid:[\w-]+\); run davgate with the old settings/;

/** Starts davgate for Ann, lets it acknowledge a file that does not reach the service, and kills it. */
async function killWithPendingWrite(name: string, ...more: readonly string[]): Promise<void> {
  const program = await start(ann, ...BACK, ...more);
  service.service.setFaults({ 'error-write-share': 1 });
  expect((await put(program, name, 'of Ann')).status).toBe(201);
  await program.kill();
  service.service.setFaults({});
}

async function untilSent(program: Program): Promise<void> {
  const pendingFiles = async () =>
    ((await (await fetch(`${program.url}.davgate/healthz`)).json()) as { journalFiles: number }).journalFiles;
  await expectSoon(pendingFiles).toBe(0);
}

test('pending writes are refused to the login of another account, also when the service is away at the start, and sent to their own', async () => {
  await killWithPendingWrite('report');
  expect(await refusal(bob, ...BACK)).toMatch(PENDING_REFUSAL);
  // Write-through sends the writes that are left in the journal too, so it refuses the login as well.
  expect(await refusal(bob)).toMatch(PENDING_REFUSAL);

  const away = { 'error-metadata-share': 1, 'error-write-share': 1 };
  service.service.setFaults(away);
  const wrong = await start(bob, ...BACK);
  service.service.setFaults({});
  await expectSoon(() => wrong.output()).toMatch(
    / error the login does not belong to the owner of the stored data; no calls are made /,
  );
  expect((await put(wrong, 'new', 'x')).status).toBe(503);
  await wrong.stop();
  expect([await isThere(bob, '/report'), await isThere(bob, '/new')]).toEqual([false, false]);

  service.service.setFaults(away);
  const right = await start(ann);
  service.service.setFaults({});
  await untilSent(right);
  expect([await isThere(ann, '/report'), await isThere(bob, '/report')]).toEqual([true, false]);
  await right.stop();
  // The journal is empty, so the other account is served.
  const next = await start(bob, ...BACK);
  expect((await put(next, 'of-bob', 'x')).status).toBe(201);
  await untilSent(next);
  expect([await isThere(ann, '/of-bob'), await isThere(bob, '/of-bob')]).toEqual([false, true]);
});

test('a placeholder is refused to the login of another account and stored in its own', async () => {
  const headers = { 'user-agent': 'WebDAVFS/3.0.0 (03008000) Darwin/21.0.0' };
  expect((await put(await start(ann), 'first-half', '', headers)).status).toBe(201);
  await started[0]?.kill();
  expect(await refusal(bob)).toMatch(PENDING_REFUSAL);
  expect(await (await start(ann)).stop()).toBe(0);
  expect([await isThere(ann, '/first-half'), await isThere(bob, '/first-half')]).toEqual([true, false]);
});

test('pending writes for one root of an account are refused to another root and sent to their own', async () => {
  await rpc({ ...service, token: ann }, 'files/create_folder_v2', { path: '/Team' });
  await killWithPendingWrite('plan', '--root', '/Team');
  expect(await refusal(ann, ...BACK)).toMatch(
    /still be sent to ann@example\.org \(dbid:[\w-]+, folder \/Team\), but this login belongs to ann@example\.org \(dbid:[\w-]+\);/,
  );
  await untilSent(await start(ann, ...BACK, '--root', '/team'));
  expect([await isThere(ann, '/Team/plan'), await isThere(ann, '/plan')]).toEqual([true, false]);
});

test('locks and local files of one account do not apply to another, and are there again for the first one', async () => {
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

test('a login without account_info.read is served with a warning, and refused once the owner of the data is known', async () => {
  const scopes = SCOPES.filter((scope) => scope !== 'account_info.read');
  const anonymous = await tokenFor(annsId, scopes);
  const program = await start(anonymous);
  expect(program.output()).toContain('a change of the account will not be noticed');
  expect((await put(program, 'anonymous', 'x')).status).toBe(201);
  await program.stop();
  await (await start(ann)).stop();
  expect(await refusal(anonymous)).toMatch(
    /belongs to ann@example\.org .*; give its app the scope account_info\.read$/,
  );
});
