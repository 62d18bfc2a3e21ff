import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { Agent, request } from 'node:https';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { builtUrl } from '../support/build.ts';
import { expectSoon } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { cheapHash, type Program, startProgram, temporaryDirectory } from '../support/program.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';
import { startBalancer } from '../support/reverse-proxy.ts';
import { ServiceProcess } from '../support/service-process.ts';

// Three gateways on one Redis, behind the proxies of docs/deploy. Each user's requests go to one of the gateways.

const GATEWAYS = [0, 1, 2];
const USERS = Array.from({ length: 50 }, (_, index) => `user-${index}`);

/** Time between two requests of one user, in ms: the users need not fill the machine. */
const PAUSE_MS = 100;

let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
let service: ServiceProcess;
let redis: TestRedis;
let ports: readonly number[];
let programs: Program[];
let agent: Agent;

beforeEach(async () => {
  directory = await temporaryDirectory();
  service = new ServiceProcess(builtUrl('service/server.ts'), join(directory.path, 'service'));
  [redis] = await Promise.all([startRedis(), service.start()]);
  const { url, token } = service;
  const users = USERS.map((name) => ({ name, 'password-hash': cheapHash('pass'), drive: 'shared' }));
  const drives = { shared: { 'api-url': url, token } };
  await writeFile(join(directory.path, 'config.json'), JSON.stringify({ drives, users }));
  ports = await Promise.all(GATEWAYS.map(freePort));
  programs = await Promise.all(GATEWAYS.map(startGateway));
  agent = new Agent({ rejectUnauthorized: false, keepAlive: true });
});
afterEach(async () => {
  agent.destroy();
  await Promise.all(programs.map((program) => program.kill()));
  await redis.close();
  await service.end('SIGKILL');
  await directory.remove();
});

function startGateway(index: number): Promise<Program> {
  return startProgram({
    dataDirectory: join(directory.path, `gateway-${index}`),
    port: ports[index] ?? 0,
    login: 'configured',
    args: [
      ...['--config', join(directory.path, 'config.json'), '--redis', redis.url],
      ...['--trusted-proxy', '127.0.0.1', '--drain-seconds', '5'],
    ],
  });
}

/** Stops a gateway in order. */
async function stopGateway(index: number): Promise<void> {
  const program = programs[index];
  expect(await program?.stop(), program?.output()).toBe(0);
}

interface Answer {
  readonly status: number;
  readonly body: string;
}

async function ask(proxy: { readonly url: string }, user: string, method: string, path: string, body = '') {
  const outgoing = request(`${proxy.url}/${path}`, { method, agent, auth: `${user}:pass` }).end(body);
  const [answer] = (await once(outgoing, 'response')) as [IncomingMessage]; // arguments of 'response'
  return { status: answer.statusCode ?? 0, body: await text(answer) } satisfies Answer;
}

/** Whether a gateway has answered a PUT since its start. */
const hasServed = (index: number) => programs[index]?.output().includes('method="PUT"');

test('behind haproxy, 50 users who write all the time see no error while each of three gateways is restarted, and every file has its last content', async () => {
  const proxy = await startBalancer('haproxy', ports);
  let isOver = false;
  const troubles: unknown[] = [];
  const write = async (user: string) => {
    let last = '';
    for (let round = 0; !isOver; round++) {
      last = `round ${round} of ${user}`;
      const { status, body } = await ask(proxy, user, 'PUT', user, last);
      if (status !== 201 && status !== 204) troubles.push([user, round, status, body]);
      await setTimeout(PAUSE_MS);
    }
    return last;
  };
  const writing = USERS.map((user) => write(user).catch((error: unknown) => troubles.push([user, error])));
  for (const index of GATEWAYS) await expectSoon(() => hasServed(index)).toBe(true);
  for (const index of GATEWAYS) {
    await stopGateway(index);
    programs[index] = await startGateway(index);
    await expectSoon(() => hasServed(index)).toBe(true);
  }
  isOver = true;
  const written = await Promise.all(writing);
  expect(troubles).toEqual([]);
  for (const [index, user] of USERS.entries())
    await expectSoon(() => ask(proxy, user, 'GET', user)).toEqual({ status: 200, body: written[index] });
  await proxy.stop();
});

test('behind nginx, the users of a stopped gateway write through the others, and again through it after its start', async () => {
  const proxy = await startBalancer('nginx', ports);
  const writeAll = async () => {
    const answers = await Promise.all(USERS.map((user) => ask(proxy, user, 'PUT', user, user)));
    return answers.filter(({ status }) => status !== 201 && status !== 204);
  };
  expect(await writeAll()).toEqual([]);
  await expectSoon(() => GATEWAYS.map(hasServed)).toEqual([true, true, true]);
  await stopGateway(0);
  expect(await writeAll()).toEqual([]);
  programs[0] = await startGateway(0);
  await expectSoon(async () => (await writeAll()).length === 0 && hasServed(0)).toBe(true);
  await proxy.stop();
});
