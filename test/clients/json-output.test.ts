import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { PROJECT_ROOT } from '../support/build.ts';
import { command } from '../support/command.ts';
import { type Program, startProgram, temporaryDirectory } from '../support/program.ts';
import { startTestService, type TestService } from '../support/service.ts';

const LOCK = `<D:lockinfo xmlns:D="DAV:"><D:lockscope><D:exclusive/></D:lockscope>
  <D:locktype><D:write/></D:locktype><D:owner>Ann &amp; "Bob"</D:owner></D:lockinfo>`;

/** A time as JSON has it. */
const TIME = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);

let data: Awaited<ReturnType<typeof temporaryDirectory>>;
let service: TestService;
let program: Program;
beforeAll(async () => {
  [data, service] = await Promise.all([temporaryDirectory(), startTestService()]);
  program = await startProgram({
    dataDirectory: data.path,
    args: ['--write-mode', 'back', '--api-url', service.url, '--token', service.token],
  });
});
afterAll(async () => {
  await program.kill();
  await service.close();
  await data.remove();
});

/** Runs a command with `--json`. Returns the value that it prints to standard output, which must be all there is. */
async function jsonOf(...words: readonly string[]): Promise<unknown> {
  const args = [join(PROJECT_ROOT, 'dist/cli/main.js'), ...words, '--json'];
  const { code, stdout, output } = await command(process.execPath, args);
  expect([code, output]).toEqual([0, stdout]);
  return JSON.parse(stdout);
}

test('davgate journal --json prints a list of the pending writes, empty without any', async () => {
  expect(await jsonOf('journal', '--data-dir', data.path)).toEqual([]);
  service.service.setFaults({ 'error-write-share': 1 });
  const headers = { authorization: program.authorization };
  await fetch(`${program.url}late.txt`, { method: 'PUT', headers, body: 'late' });
  expect(await jsonOf('journal', '--data-dir', data.path)).toEqual([
    expect.objectContaining({
      state: 'waiting',
      drive: 'default',
      path: '/late.txt',
      bytes: 4,
      written: TIME,
    }),
  ]);
});

test('davgate locks --json prints a list of the locks, empty without any', async () => {
  expect(await jsonOf('locks', '--data-dir', data.path)).toEqual([]);
  const headers = { authorization: program.authorization, timeout: 'Second-3600', depth: '0' };
  const answer = await fetch(`${program.url}plan.txt`, { method: 'LOCK', headers, body: LOCK });
  const token = answer.headers.get('lock-token')?.slice(1, -1);
  expect(await jsonOf('locks', '--data-dir', data.path)).toEqual([
    {
      ...{ drive: 'default', path: '/plan.txt', user: 'tester', owner: 'Ann & "Bob"' },
      ...{ scope: 'exclusive', depth: '0', expires: TIME, token },
    },
  ]);
});

test('the lists of davgate service print JSON with --json', async () => {
  const list = (noun: string) => jsonOf('service', noun, 'list', '--data', service.dataDirectory);
  expect(await list('account')).toEqual([
    {
      email: 'drive@davgate.invalid',
      name: 'davgate Drive',
      quota: '2.2 TB',
      quotaBytes: 2 * 1024 ** 4,
    },
  ]);
  expect(await list('app')).toEqual([
    { key: service.appKey, name: 'davgate', status: 'production', users: 1 },
  ]);
  const tokens = (await list('token')) as { kind: string; account: string; scopes: readonly string[] }[];
  expect(tokens.map(({ kind }) => kind).sort()).toEqual(['access', 'refresh']);
  expect(JSON.stringify(tokens)).not.toContain(service.token);
});
