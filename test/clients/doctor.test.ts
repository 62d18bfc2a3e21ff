import { once } from 'node:events';
import { afterEach, beforeEach, expect, test } from 'vitest';
import {
  matchOutput,
  runProgram,
  spawnProgram,
  startProgram,
  temporaryDirectory,
} from '../support/program.ts';
import { startTestService } from '../support/service.ts';
import { rpc } from '../support/service-client.ts';

let data: { readonly path: string; remove(): Promise<void> };
beforeEach(async () => {
  data = await temporaryDirectory();
});
afterEach(() => data.remove());

const argumentsFor = (listen: string, ...more: string[]) => [
  'doctor',
  ...['--listen', listen, '--data-dir', data.path, '--cache-dir', `${data.path}/cache`],
  ...more,
];
const ANY_PORT = '127.0.0.1:0';

test('davgate doctor without an account tests the embedded service and finds no failure', async () => {
  const { code, output } = await runProgram(argumentsFor(ANY_PORT));
  expect(output).toMatch(/^ok +service +the embedded service runs/m);
  expect(output).toMatch(/^ok +cleanup +removed /m);
  // The check of Node depends on the version that runs the tests.
  const trouble = output.split('\n').filter((line) => /^(warn|FAIL)(?! +node )/.test(line));
  expect(trouble).toEqual([]);
  expect(output).toMatch(/\n\d+ ok, [01] warnings, 0 failures\n$/);
  expect(code).toBe(0);
});

test('davgate doctor beside a running davgate ends with exit code 0, and davgate keeps serving', async () => {
  const program = await startProgram({ dataDirectory: data.path });
  const { code, output } = await runProgram(argumentsFor(new URL(program.url).host));
  expect(output).toMatch(/^ok +listener +127\.0\.0\.1:\d+ is in use by a davgate that is running/m);
  expect(output).toMatch(/^warn +service +the embedded service is in use by the running davgate/m);
  expect(code).toBe(0);
  const { authorization } = program;
  expect((await fetch(program.url, { headers: { authorization } })).status).toBe(200);
  expect(await program.stop()).toBe(0);
});

test('davgate doctor with an invalid setting ends with exit code 2 and one line', async () => {
  const { code, output } = await runProgram(argumentsFor(ANY_PORT, '--delete', 'never'));
  expect([code, output]).toEqual([2, 'davgate: --delete: "never" is not one of auto, permanent, trash\n']);
});

test.each(['SIGINT', 'SIGTERM'] as const)(
  '%s during davgate doctor removes its folder and ends it with exit code 1',
  async (signal) => {
    const service = await startTestService();
    service.service.setFaults({ 'latency-write-ms': 700 });
    const environment = { ...process.env, DAVGATE_TOKEN: service.token };
    const { child, output } = spawnProgram(argumentsFor(ANY_PORT, '--api-url', service.url), environment);
    await matchOutput(child, output, /^ok +folder +made /m);
    child.kill(signal);
    const [code] = await once(child, 'close');
    expect(output()).toMatch(/^ok +cleanup +removed /m);
    expect(output()).toMatch(/^FAIL +stopped +not all checks were run$/m);
    expect(code).toBe(1);
    const { json } = await rpc(service, 'files/list_folder', { path: '' });
    expect((json as { entries: unknown[] }).entries).toEqual([]);
    await service.close();
  },
);

test('davgate doctor with a wrong token ends with exit code 1 and does not print the token', async () => {
  const service = await startTestService();
  const environment = { ...process.env, DAVGATE_TOKEN: 'sl.WRONG' };
  const { code, output } = await runProgram(argumentsFor(ANY_PORT, '--api-url', service.url), environment);
  expect(code).toBe(1);
  expect(output).toMatch(/^FAIL +account .*give a new access token/m);
  expect(output).not.toContain('WRONG');
  await service.close();
});
