import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { seededRandom } from '../../src/service/faults/faults.ts';
import type { FaultSettings } from '../../src/service/faults/switches.ts';
import { effort, testSeed } from '../support/effort.ts';
import { startTestGateway, type TestGateway } from '../support/gateway.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { type Answered, rpc } from '../support/service-client.ts';
import { RandomClient } from './random-client.ts';
import { bytesOf } from './tree-model.ts';
import { storedBytes, storedTree } from './upstream-truth.ts';

/** Number of operations of one scenario, of all its clients together. */
const OPERATIONS = effort(15);
/** Seed of all random choices of this file. */
const SEED = testSeed();
const CLIENTS = 3;
/** Maximum number of disturbances: one that meets a commit of the gateway pauses the account for a second. */
const DISTURBANCES_MAX = 4;
/** Number of operations of a client from one disturbance to the next. */
const DISTURBED_EVERY = 5;

interface Scenario {
  readonly faults: FaultSettings;
  /** Short, so that the gateway gives up and operations fail. */
  readonly deadlineMs?: number;
  /**
   * Whether davgate absorbs all faults, so that no operation may fail. In other scenarios chance and load decide how
   * many operations fail, and each of those must have done all of its work or nothing.
   */
  readonly isAbsorbed: boolean;
  /** Whether the gateway runs with write-back. */
  readonly writeBack?: boolean;
  /** Whether another client of the service commits in the same namespace now and then. */
  readonly isDisturbed?: boolean;
}

const ALL_TOGETHER: FaultSettings = {
  'rate-per-second': 200,
  'rate-burst': 100,
  'rate-text-share': 0.5,
  'contention-hold-ms': 2,
  'error-metadata-share': 0.04,
  'error-read-share': 0.04,
  'error-write-share': 0.04,
  'error-burst': 2,
  'latency-metadata-ms': 3,
  'latency-read-ms': 3,
  'latency-write-ms': 5,
  'bandwidth-bytes-per-second': 50_000_000,
  'cut-share': 0.05,
  'corrupt-share': 0.03,
  'lost-answer-share': 0.05,
  'token-lifetime-seconds': 2,
};

const SCENARIOS: Readonly<Record<string, Scenario>> = {
  'no fault': { faults: {}, isAbsorbed: true },
  'rate limit': {
    faults: { 'rate-per-second': 60, 'rate-burst': 30, 'rate-text-share': 0.5 },
    isAbsorbed: true,
  },
  'write contention': { faults: { 'contention-hold-ms': 10 }, isAbsorbed: true, isDisturbed: true },
  'errors of every class': {
    faults: {
      'error-metadata-share': 0.1,
      'error-read-share': 0.1,
      'error-write-share': 0.1,
      'error-burst': 2,
    },
    isAbsorbed: true,
  },
  'slow calls on slow connections': {
    faults: {
      'latency-metadata-ms': 20,
      'latency-read-ms': 20,
      'latency-write-ms': 40,
      'bandwidth-bytes-per-second': 20_000_000,
    },
    isAbsorbed: true,
  },
  'cut downloads': { faults: { 'cut-share': 0.3 }, isAbsorbed: true },
  'downloads cut at once': { faults: { 'cut-share': 0.3, 'cut-after-bytes': 1 }, isAbsorbed: true },
  'lost answers': { faults: { 'lost-answer-share': 0.2 }, isAbsorbed: true },
  'corrupted downloads': { faults: { 'corrupt-share': 0.2 }, isAbsorbed: false },
  'tokens and sessions that end': {
    faults: { 'token-lifetime-seconds': 1, 'session-lifetime-seconds': 1, 'latency-write-ms': 30 },
    isAbsorbed: false,
  },
  'everything together': { faults: ALL_TOGETHER, isAbsorbed: false },
  'everything together, with a deadline of 10 ms': {
    faults: {
      ...ALL_TOGETHER,
      'error-metadata-share': 0.1,
      'error-read-share': 0.1,
      'error-write-share': 0.2,
      'error-burst': 3,
      'lost-answer-share': 0.15,
    },
    deadlineMs: 10,
    isAbsorbed: false,
  },
  'no fault, with write-back': { faults: {}, isAbsorbed: true, writeBack: true },
  'lost answers, with write-back': {
    faults: { 'lost-answer-share': 0.2 },
    isAbsorbed: true,
    writeBack: true,
  },
  'everything together, with write-back': { faults: ALL_TOGETHER, isAbsorbed: false, writeBack: true },
};

/** One service for all scenarios. The clients of each have folders of their own. */
let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.close());

interface Run {
  readonly gateway: TestGateway;
  readonly clients: readonly RandomClient[];
}

describe(`with seed ${SEED} (TEST_SEED)`, () => {
  test.each(Object.entries(SCENARIOS))(
    'with the faults "%s" every operation of random clients does all of its work or nothing',
    async (name, scenario) => {
      const run = await start(name, scenario);
      const { clients } = run;
      try {
        await Promise.all(clients.map((client) => client.makeFolder()));
        service.service.setFaults({ ...scenario.faults, seed: SEED });
        const others: Promise<Answered>[] = [];
        const disturb = () => {
          if (scenario.isDisturbed && others.length < DISTURBANCES_MAX) others.push(commitElsewhere(service));
        };
        await Promise.all(clients.map((client) => work(client, OPERATIONS / CLIENTS, disturb)));
        for (const { status } of await Promise.all(others)) expect([200, 409, 429]).toContain(status);
        service.service.setFaults({});
        await run.gateway.landed();
        for (const [index, client] of clients.entries()) await compare(client, folderOf(name, index));
        const failures = clients.reduce((sum, client) => sum + client.failures, 0);
        if (scenario.isAbsorbed) expect(failures).toBe(0);
      } finally {
        for (const client of clients) client.close();
        service.service.setFaults({});
        await run.gateway.close();
      }
    },
  );
});

async function start(name: string, { deadlineMs, writeBack = false }: Scenario): Promise<Run> {
  const random = seededRandom(SEED);
  const gateway = await startTestGateway({
    service,
    writeBack,
    // Short waits between retries.
    random: () => random() / 20,
    ...(deadlineMs !== undefined && { deadlineMs }),
  });
  const clients = Array.from({ length: CLIENTS }, (_, index) => {
    return new RandomClient({
      service,
      url: gateway.url,
      folder: folderOf(name, index),
      random: seededRandom(SEED + index + 1),
      readsPartsOfLarge: !('corrupt-share' in (SCENARIOS[name]?.faults ?? {})),
    });
  });
  return { gateway, clients };
}

async function work(client: RandomClient, operations: number, disturb: () => void): Promise<void> {
  for (let done = 0; done < operations; done++) {
    if (done % DISTURBED_EVERY === 0) disturb();
    await client.step();
  }
}

function commitElsewhere(service: TestService): Promise<Answered> {
  return rpc(service, 'files/create_folder_v2', { path: '/elsewhere' });
}

/** Checks that gateway and service have exactly the acknowledged content, byte for byte. */
async function compare(client: RandomClient, folder: string): Promise<void> {
  await client.compareAll();
  expect(await storedTree(service, folder)).toEqual(client.tree.digest());
  for (const [path, node] of client.tree.nodes)
    if (node !== 'folder') expect((await storedBytes(service, path)).equals(bytesOf(node))).toBe(true);
}

function folderOf(scenario: string, index: number): string {
  return `/${scenario} ${index}`;
}
