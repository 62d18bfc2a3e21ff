import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import type { RemoteOptions } from '../../src/api/client.ts';
import type { CommitTurnStore } from '../../src/state/commit-turns.ts';
import { openRedisState } from '../../src/state/redis/state.ts';
import type { State } from '../../src/state/state.ts';
import { systemClock } from '../../src/util/clock.ts';
import { silentLog } from '../../src/util/log.ts';
import { eventually, WAIT_MS } from '../support/eventually.ts';
import { GatewayClient, startTestGateway, type TestGateway } from '../support/gateway.ts';
import { sayToRedis, startRedis, type TestRedis } from '../support/redis.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { download, rpc } from '../support/service-client.ts';
import { UpstreamCalls } from '../support/upstream-calls.ts';

const GATEWAYS = 3;
const CLIENTS = 9;

/** Makes the service refuse a second commit in the namespace. */
const CONTENTION = { 'latency-write-ms': 20, 'contention-hold-ms': 10 };

let redis: TestRedis;
let service: TestService;
let root: string;
let roots = 0;
let states: State[];
let gateways: TestGateway[];
let clients: GatewayClient[];
let upstream: UpstreamCalls;
/** Calls that the service has answered with 429. */
let refusals = 0;

function noteAnswer(message: unknown): void {
  // The message that undici publishes on this channel.
  const { response } = message as { response: { statusCode: number } };
  if (response.statusCode === 429) refusals += 1;
}

beforeAll(async () => {
  subscribe('undici:request:headers', noteAnswer);
  [redis, service] = await Promise.all([
    // A write to the disk may take longer than davgate waits.
    startRedis(['--appendfsync', 'no']),
    startTestService(),
  ]);
});
afterAll(async () => {
  unsubscribe('undici:request:headers', noteAnswer);
  await Promise.all([redis.close(), service.close()]);
});

beforeEach(async () => {
  root = `/root-${++roots}`;
  await rpc(service, 'files/create_folder_v2', { path: root });
  states = await Promise.all(
    Array.from({ length: GATEWAYS }, () =>
      openRedisState({ url: redis.url, clock: systemClock, log: silentLog }),
    ),
  );
  // No gateway finds out by itself that the service refuses parallel commits.
  await states[0]?.budget?.('a').learned('refused');
  gateways = await Promise.all(
    states.map((state) => startTestGateway({ service, root, random: () => 0, shared: sharedOf(state) })),
  );
  clients = Array.from(
    { length: CLIENTS },
    (_, number) => new GatewayClient(gateways[number % GATEWAYS]?.url ?? ''),
  );
  await clients[0]?.send('MKCOL', '/d');
  for (const client of clients) await client.send('PROPFIND', '/d/', { headers: { depth: '1' } });
  upstream = new UpstreamCalls(service.url);
});
afterEach(async () => {
  service.service.setFaults({});
  upstream.close();
  for (const client of clients) client.close();
  for (const gateway of gateways) await gateway.close();
  for (const state of states) await state.close();
  await sayToRedis(redis, 'FLUSHALL');
});

function sharedOf(state: State): RemoteOptions['shared'] {
  // A gateway that went on alone on a busy machine would not take part.
  const answerMsMax = WAIT_MS;
  return state.budget && { budget: state.budget('a'), turns: turnsOf(state), answerMsMax };
}

function turnsOf(state: State): CommitTurnStore {
  const turns = state.commitTurns?.('n');
  if (!turns) throw new Error('Redis shares no turns');
  return turns;
}

const textOf = (path: string, sizeBytes = 0) => `the content of ${path}`.padEnd(sizeBytes);

/** Size of files that each gateway stages alone, and that gateways commit together, in bytes. */
const STAGED_ALONE_BYTES = 600 * 1024;

/** Lets all clients write at once, each one new file after the other. Returns the statuses of the answers by path. */
async function writeAll(
  name: string,
  filesEach: number,
  sizeBytes = 0,
): Promise<ReadonlyMap<string, number>> {
  const statuses = new Map<string, number>();
  const headers = { 'if-none-match': '*' };
  const writing = clients.map(async (client, number) => {
    for (let file = 0; file < filesEach; file += 1) {
      const path = `/d/${name}-${number}-${file}`;
      const { status } = await client.send('PUT', path, {
        headers,
        body: Buffer.from(textOf(path, sizeBytes)),
      });
      statuses.set(path, status);
    }
  });
  await Promise.all(writing);
  return statuses;
}

/** Checks that each file was answered with 201, is stored byte for byte, and was committed once. */
async function expectAllStored(statuses: ReadonlyMap<string, number>, sizeBytes = 0): Promise<void> {
  service.service.setFaults({});
  expect([...statuses.values()].filter((status) => status !== 201)).toEqual([]);
  for (const path of statuses.keys()) {
    expect((await download(service, root + path)).text).toBe(textOf(path, sizeBytes));
    const { json } = await rpc(service, 'files/list_revisions', { path: root + path });
    expect([path, (json as { entries: unknown[] }).entries.length]).toEqual([path, 1]);
  }
}

test('small files written through several gateways at once are committed together and do not collide', async () => {
  service.service.setFaults(CONTENTION);
  // The gateways learn that they are several.
  await expectAllStored(await writeAll('first', 1));
  service.service.setFaults(CONTENTION);
  upstream.take();
  refusals = 0;
  const statuses = await writeAll('next', 6);
  const commits = upstream
    .take()
    .filter((route) => /^(upload|upload_session\/finish(_batch_v2)?)$/.test(route));
  // Read before the checks, and on the wire: davgate repeats a commit that collided without a line in its log.
  expect(refusals).toBe(0);
  await expectAllStored(statuses);
  // 54 files; each gateway writes at most three at a time.
  expect(commits.length).toBeLessThan(30);
});

test.each([1, 2])(
  'small files written through several gateways at once are all stored, each once, when answers are lost (seed %d)',
  async (seed) => {
    service.service.setFaults({
      ...CONTENTION,
      'lost-answer-share': 0.25,
      'error-write-share': 0.1,
      'contention-entry-share': 0.1,
      seed,
    });
    await expectAllStored(await writeAll('lost', 4));
  },
);

test('small files written through several gateways at once are all stored, each once, when Redis dies meanwhile', async () => {
  service.service.setFaults(CONTENTION);
  await writeAll('first', 1);
  const writing = writeAll('next', 6);
  await eventually(() => expect(upstream.take()).toContain('upload_session/finish_batch_v2'), 5);
  await redis.kill();
  const statuses = await writing;
  await redis.start();
  await expectAllStored(statuses);
});

test('of the batches that a gateway has taken when it is killed, those it has sent and those it has not are all stored once', async () => {
  service.service.setFaults(CONTENTION);
  await writeAll('first', 1);
  const killed = turnsOf(await newState());
  expect(await ask(killed, 'blocks')).toMatchObject({ is: 'granted' });
  expect(await ask(killed, 'killed', ['{}'])).toMatchObject({ is: 'waiting' });
  const writing = writeAll('next', 1, STAGED_ALONE_BYTES);
  const batches = async () =>
    Number(/^\*(\d+)/.exec(await sayToRedis(redis, 'KEYS davgate:{commits_n}:batch*'))?.[1]);
  await eventually(async () => {
    // They would lose their places if they asked no more, however long the clients take.
    await killed.renew('blocks');
    await ask(killed, 'killed', ['{}'], true);
    expect(await batches()).toBeGreaterThan(GATEWAYS);
  }, 5);
  // On a fast machine the next turn would wait for as many entries as the last one had.
  await sayToRedis(redis, 'DEL davgate:{commits_n}:expected');
  // Sent together, so that no gateway asks in between: it would take the turn, and this batch along.
  const left = killed.leave('blocks', []);
  const answer = await ask(killed, 'killed', ['{}'], true);
  await left;
  if (answer.is !== 'granted') throw new Error(`the turn is not granted: ${answer.is}`);
  const [sent, ...others] = answer.offers;
  expect(others.length).toBeGreaterThan(0);
  const entries = sent?.entries.map((entry) => JSON.parse(entry));
  expect(await rpc(service, 'files/upload_session/finish_batch_v2', { entries })).toMatchObject({
    status: 200,
  });
  // The turn ends by the clock of Redis, which a test cannot set.
  await sayToRedis(redis, 'DEL davgate:{commits_n}:turn');
  await expectAllStored(await writing, STAGED_ALONE_BYTES);
});

async function newState(): Promise<State> {
  const state = await openRedisState({ url: redis.url, clock: systemClock, log: silentLog });
  states.push(state);
  return state;
}

function ask(turns: CommitTurnStore, id: string, entries: readonly string[] = [], isRepeated = false) {
  return turns.enter({ id, kind: 'commit', entries, isRepeated, isGathering: false });
}
