import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { SCOPES } from '../../src/service/accounts/scopes.ts';
import { expectSoon } from '../support/eventually.ts';
import { type FailingFront, startFailingFront } from '../support/failing-front.ts';
import { type Program, runProgram, startProgram, temporaryDirectory } from '../support/program.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { rpc } from '../support/service-client.ts';

const BACK = ['--write-mode', 'back'];

let service: TestService;
let front: FailingFront;
/** The service as Ann, a member of a team, calls it. */
let ann: TestService;
let space: string;
let home: string;
beforeAll(async () => {
  service = await startTestService();
  front = await startFailingFront(service.url);
  const person = { email: 'ann@example.org', givenName: 'Ann', surname: '', mayDeletePermanently: true };
  const { id: accountId } = await service.service.addAccount(person, 'Crew');
  ann = { ...service, token: await service.service.grant({ accountId, scopes: SCOPES }) };
  const { json } = await rpc(ann, 'users/get_current_account', null);
  const { root_info: info } = json as {
    root_info: { root_namespace_id: string; home_namespace_id: string };
  };
  [space, home] = [info.root_namespace_id, info.home_namespace_id];
});
afterAll(async () => {
  await front.close();
  await service.close();
});

let data: { readonly path: string; remove(): Promise<void> };
const started: Program[] = [];
beforeEach(async () => {
  data = await temporaryDirectory();
});
afterEach(async () => {
  front.comeBack();
  service.service.setFaults({});
  for (const program of started.splice(0)) await program.kill();
  await data.remove();
});

const login = () => ['--api-url', front.url, '--token', ann.token];

async function start(...more: readonly string[]): Promise<Program> {
  const args = [...login(), ...more];
  const program = await startProgram({ dataDirectory: data.path, login: false, args });
  started.push(program);
  return program;
}

/** Starts davgate, which must end with exit code 2; returns what it says. */
async function refusal(...more: readonly string[]): Promise<string> {
  const { message } = await start(...more).then(
    () => new Error('it serves'),
    (error: Error) => error,
  );
  expect(message).toMatch(/^davgate ended with 2:/);
  return message;
}

const ask = (program: Program, method: string, path: string, body?: string) =>
  fetch(new URL(path, program.url), { method, ...(body !== undefined && { body }) });

async function membersOf(program: Program, path: string): Promise<readonly string[]> {
  const answer = await fetch(new URL(path, program.url), { method: 'PROPFIND', headers: { depth: '1' } });
  const hrefs = [...(await answer.text()).matchAll(/<D:href>([^<]*)<\/D:href>/g)].map(
    ([, href]) => href ?? '',
  );
  return hrefs.filter((href) => href !== path).sort();
}

async function untilSent(program: Program): Promise<void> {
  const pending = async () =>
    ((await (await ask(program, 'GET', '/.davgate/healthz')).json()) as { journalFiles: number })
      .journalFiles;
  await expectSoon(pending).toBe(0);
}

test("a drive of the team's root shows the home and shared folders, and a file is the same in both namespaces", async () => {
  const own = await start();
  expect((await ask(own, 'PUT', '/mine.txt', 'mine')).status).toBe(201);
  await own.stop();
  const all = await start('--namespace', 'root');
  expect((await ask(all, 'MKCOL', '/Shared')).status).toBe(201);
  expect((await ask(all, 'PUT', '/Shared/ours.txt', 'ours')).status).toBe(201);
  expect(await membersOf(all, '/')).toEqual(['/Ann/', '/Shared/']);
  expect(await (await ask(all, 'GET', '/Ann/mine.txt')).text()).toBe('mine');
  expect((await ask(all, 'MOVE', '/nothing')).status).toBe(400);
  // A change made in the home shows in the root without a restart.
  await rpc(ann, 'files/move_v2', { from_path: '/mine.txt', to_path: '/moved.txt' });
  await expectSoon(() => membersOf(all, '/Ann/')).toEqual(['/Ann/moved.txt']);
  await all.stop();
  const folder = await start('--namespace', space, '--root', '/Shared');
  expect(await membersOf(folder, '/')).toEqual(['/ours.txt']);
});

test('pending writes for one namespace are refused to another one and sent to their own', async () => {
  const program = await start(...BACK, '--namespace', 'root');
  service.service.setFaults({ 'error-write-share': 1 });
  expect((await ask(program, 'PUT', '/of-the-team', 'x')).status).toBe(201);
  await program.kill();
  service.service.setFaults({});
  expect(await refusal(...BACK)).toMatch(
    new RegExp(
      `1 file in \\S+ must still be sent to ann@example\\.org \\(dbid:\\S+, folder ns:${space}\\), but this login belongs to ann@example\\.org \\(dbid:`,
    ),
  );
  // The number of the root is the same namespace.
  await untilSent(await start(...BACK, '--namespace', space));
  const { status } = await rpc(ann, 'files/get_metadata', { path: '/of-the-team' });
  expect(status).toBe(409);
});

test('locks of one namespace do not apply in another, and the home named by its number is the home', async () => {
  const first = await start();
  expect((await ask(first, 'PUT', '/.DS_Store', 'of the home')).status).toBe(201);
  await first.stop();
  const other = await start('--namespace', 'root');
  expect((await ask(other, 'GET', '/.DS_Store')).status).toBe(404);
  await other.stop();
  const again = await start('--namespace', home);
  expect(await (await ask(again, 'GET', '/.DS_Store')).text()).toBe('of the home');
});

test('after the account was moved to another root requests answer 503, no call is made, and a restart serves', async () => {
  const program = await start('--namespace', 'root');
  expect((await ask(program, 'PUT', '/kept.txt', 'kept')).status).toBe(201);
  const invalid_root = { '.tag': 'user', root_namespace_id: '1', home_namespace_id: '1' };
  front.leave({
    status: 422,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      error_summary: 'invalid_root/.',
      error: { '.tag': 'invalid_root', invalid_root },
    }),
  });
  const unread = () => ask(program, 'GET', '/unread.txt').then(({ status }) => status);
  await expectSoon(unread).toBe(503);
  await expectSoon(() => program.output()).toMatch(
    / error the root of the account has changed; no calls are made .*the account was moved to another root; restart davgate/,
  );
  front.comeBack();
  const answer = await ask(program, 'PUT', '/new.txt', 'new');
  expect([answer.status, await answer.text()]).toEqual([
    503,
    "the storage service no longer serves the namespace of this drive; see davgate's log\n",
  ]);
  await program.stop();
  expect(await (await ask(await start('--namespace', 'root'), 'GET', '/kept.txt')).text()).toBe('kept');
});

test('a namespace that the account cannot use ends the start with its number and what to do', async () => {
  expect(await refusal('--namespace', '1')).toContain(
    'drive "default": the account cannot use the namespace 1: files/list_folder/get_latest_cursor: the storage service refused with status 422: no_permission; correct --namespace',
  );
  expect(await refusal('--namespace', 'team')).toContain(
    '--namespace: "team" is not home, root or the number',
  );
});

test('davgate doctor says which namespace it tests', async () => {
  const doctor = (...more: string[]) =>
    runProgram(['doctor', '--listen', '127.0.0.1:0', '--data-dir', data.path, ...login(), ...more]);
  expect((await doctor('--namespace', 'root')).output).toMatch(
    new RegExp(`^ok +namespace +${space}, the team’s space$`, 'm'),
  );
  expect((await doctor()).output).toMatch(
    new RegExp(
      `^ok +namespace +${home}, the account’s home; --namespace root shows its team’s space, ${space}$`,
      'm',
    ),
  );
});

test('davgate service account create --team makes members whose homes are folders of one space', async () => {
  const admin = (...words: string[]) => runProgram(['service', 'account', ...words, '--data', data.path]);
  expect((await admin('create', 'bob@example.org', '--given-name', 'Bob', '--team', 'Crew')).code).toBe(0);
  expect((await admin('create', 'eve@example.org', '--given-name', 'bob', '--team', 'crew')).code).toBe(0);
  expect((await admin('show', 'bob@example.org')).output).toMatch(
    /^team +Crew \(namespace \d+, home \/Bob\)$/m,
  );
  const shown = JSON.parse((await admin('show', 'eve@example.org', '--json')).output) as { homePath: string };
  expect(shown.homePath).toBe('/bob (1)');
  const kept = await admin('set', 'bob@example.org', '--quota', '1GB');
  expect([kept.code, kept.output]).toEqual([
    2,
    expect.stringContaining('bob@example.org has no quota of its own: all members share the space of Crew'),
  ]);
  expect((await admin('remove', 'eve@example.org', '--delete-files')).output).toBe(
    'Removed the account eve@example.org.\nIts folder /bob (1) stays in the space of the team Crew.\n',
  );
  const refused = await admin('create', 'x@example.org', '--team', 'Crew', '--quota', '1GB');
  expect([refused.code, refused.output]).toEqual([
    2,
    'davgate: --quota and --team exclude each other: all members share the space of the team\n',
  ]);
});
