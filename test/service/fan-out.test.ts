import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { builtUrl } from '../support/build.ts';
import { effort } from '../support/effort.ts';
import { eventually } from '../support/eventually.ts';
import { type PollAnswers, Pollers } from '../support/pollers.ts';
import { ServiceProcess, type Usage } from '../support/service-process.ts';

const CONNECTIONS = Math.min(10_000, effort(1_500));
const FOLDERS = 100;
const EACH = CONNECTIONS / FOLDERS;

/**
 * Highest processor time of an idle service, in ms per second: Node's own timers. Polling 10,000 waiting calls
 * takes more.
 */
const IDLE_MS_PER_SECOND = 50;

let dataDirectory: string;
let service: ServiceProcess;
let pollers: Pollers;

beforeAll(async () => {
  dataDirectory = await mkdtemp(join(tmpdir(), 'davgate-fan-out-'));
  service = new ServiceProcess(builtUrl('service/server.ts'), dataDirectory);
  await service.start();
  pollers = new Pollers();
});
afterAll(async () => {
  pollers.close();
  await service.end('SIGKILL');
  await rm(dataDirectory, { recursive: true });
});

async function rpc<T>(name: string, argument: unknown): Promise<T> {
  const answer = await fetch(`${service.url}/2/files/${name}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${service.token}`, 'content-type': 'application/json' },
    body: JSON.stringify(argument),
  });
  expect(answer.status).toBe(200);
  return (await answer.json()) as T;
}

const countOf = (kind: keyof PollAnswers) => pollers.answers.reduce((sum, answers) => sum + answers[kind], 0);

test(`${CONNECTIONS} long polls wait with little processor time, and a change answers those of its folder alone`, async () => {
  const cursors: string[] = [];
  for (let folder = 0; folder < FOLDERS; folder++) {
    await rpc('create_folder_v2', { path: `/${folder}` });
    const { cursor } = await rpc<{ cursor: string }>('list_folder/get_latest_cursor', { path: `/${folder}` });
    cursors.push(cursor);
  }
  const before = await service.usage();
  await pollers.open(service.url, cursors, EACH);

  // Waits until the service has accepted all connections and is idle.
  let idleMs = 0;
  let last: Usage = await service.usage();
  await eventually(async () => {
    const now = await service.usage();
    idleMs = now.cpuMs - last.cpuMs;
    last = now;
    expect(idleMs).toBeLessThan(IDLE_MS_PER_SECOND);
  }, 1000);
  const perConnection = (last.memoryBytes - before.memoryBytes) / CONNECTIONS / 1000;
  process.stdout.write(
    `fan-out: ${CONNECTIONS} connections wait; ${idleMs.toFixed(1)} ms of processor time a second, ` +
      `${(last.memoryBytes / 1e6).toFixed(0)} MB in all, ${perConnection.toFixed(1)} kB each\n`,
  );

  await rpc('create_folder_v2', { path: '/7/changed' });
  await pollers.untilAnswers((answers) => answers[7]?.changed === EACH);
  await rpc('create_folder_v2', { path: '/8/changed' });
  await pollers.untilAnswers((answers) => answers[8]?.changed === EACH);
  expect([countOf('changed'), countOf('unchanged'), countOf('failed')]).toEqual([2 * EACH, 0, 0]);
  expect(service.warnings).toBe('');
});
