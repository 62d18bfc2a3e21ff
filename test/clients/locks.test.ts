import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Program, runProgram, startProgram, temporaryDirectory } from '../support/program.ts';
import { startRedis } from '../support/redis.ts';
import { startTestService, type TestService } from '../support/service.ts';

const LOCK = `<D:lockinfo xmlns:D="DAV:"><D:lockscope><D:exclusive/></D:lockscope>
  <D:locktype><D:write/></D:locktype><D:owner>Ann at her desk</D:owner></D:lockinfo>`;

let data: Awaited<ReturnType<typeof temporaryDirectory>>;
/** The service of all gateways, in this process. */
let service: TestService;
let program: Program;

async function start(...more: readonly string[]): Promise<void> {
  const args = ['--api-url', service.url, '--token', service.token, ...more];
  program = await startProgram({ dataDirectory: data.path, args });
}

beforeAll(async () => {
  [data, service] = await Promise.all([temporaryDirectory(), startTestService()]);
  await start();
});
afterAll(async () => {
  await program?.stop();
  await service.close();
  await data.remove();
});

const locks = (...words: string[]) => runProgram(['locks', ...words, '--data-dir', data.path]);

async function lock(url: string, authorization: string): Promise<string> {
  const headers = { authorization, timeout: 'Second-3600' };
  const answer = await fetch(url, { method: 'LOCK', headers, body: LOCK });
  expect([200, 201]).toContain(answer.status);
  return /<(.*)>/.exec(answer.headers.get('lock-token') ?? '')?.[1] ?? '';
}

describe('davgate locks beside a running davgate', () => {
  test('davgate locks lists a lock, and removing it lets the file be written again', async () => {
    const { authorization } = program;
    const put = () =>
      fetch(`${program.url}plan.txt`, { method: 'PUT', headers: { authorization }, body: 'x' });
    expect((await put()).status).toBe(201);
    const token = await lock(`${program.url}plan.txt`, authorization);
    expect((await put()).status).toBe(423);

    const listed = await locks();
    expect(listed.code).toBe(0);
    expect(listed.output).toMatch(/^\/plan\.txt +tester +Ann at her desk +exclusive +\S+ +in 60 min +/m);
    expect(listed.output).toContain(token);

    const unknown = await locks('remove', 'opaquelocktoken:unknown');
    expect([unknown.code, unknown.output]).toEqual([1, expect.stringContaining('no lock has this token')]);
    const removed = await locks('remove', `<${token}>`);
    expect([removed.code, removed.output]).toEqual([0, 'The lock on /plan.txt was removed.\n']);
    expect((await locks()).output).toBe('No locks.\n');
    expect((await put()).status).toBe(204);
  });

  test('davgate locks remove ends the locks at a path in any letter case, and those of a user', async () => {
    const { authorization } = program;
    for (const name of ['a', 'b', 'c']) await lock(`${program.url}${name}.txt`, authorization);
    const path = await locks('remove', '--user', 'tester', '--path=/B.txt');
    expect([path.code, path.output]).toEqual([0, 'The lock on /b.txt was removed.\n']);
    const nobody = await locks('remove', '--user', 'nobody');
    expect([nobody.code, nobody.output]).toEqual([1, expect.stringContaining('no such lock')]);
    const user = await locks('remove', '--user', 'tester');
    expect([user.code, user.output]).toEqual([
      0,
      'The lock on /a.txt was removed.\nThe lock on /c.txt was removed.\n',
    ]);
    expect((await locks()).output).toBe('No locks.\n');
  });

  test('an empty file that LOCK created stays when davgate locks removes the lock', async () => {
    const { authorization } = program;
    const token = await lock(`${program.url}new.txt`, authorization);
    expect((await locks('remove', token)).code).toBe(0);
    const found = await fetch(`${program.url}new.txt`, { headers: { authorization } });
    expect([found.status, await found.text()]).toEqual([200, '']);
  });
});

test('davgate locks lists and removes locks while davgate is stopped, also after a kill', async () => {
  const token = await lock(`${program.url}kept.txt`, program.authorization);
  await program.kill();
  expect((await locks()).output).toContain(token);
  expect((await locks('remove', token)).code).toBe(0);
  expect((await locks()).output).toBe('No locks.\n');
});

test('davgate locks lists and removes the locks in a Redis while a gateway uses it', async () => {
  const redis = await startRedis();
  // The kill before has left a control socket, which this start replaces.
  await start('--redis', redis.url);
  const token = await lock(`${program.url}shared.txt`, program.authorization);
  const args = ['--redis', redis.url];
  expect((await locks(...args)).output).toContain(token);
  expect((await locks('remove', token, ...args)).code).toBe(0);
  expect((await locks(...args)).output).toBe('No locks.\n');
  expect(await program.stop()).toBe(0);
  await redis.close();
});

test('davgate locks on a data directory that no davgate has used says that there are none', async () => {
  const unused = ['locks', '--data-dir', `${data.path}/unused`];
  expect(await runProgram(unused)).toEqual({ code: 0, output: 'No locks.\n' });
});

// test/unit/cli/program.test.ts tests the other wrong usages without a process for each.
test('davgate locks remove that selects no lock ends with exit code 2 and the reason', async () => {
  const { code, output } = await locks('remove');
  expect([code, output]).toEqual([2, expect.stringMatching(/^davgate: locks remove: no locks selected/)]);
});
