import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { seededRandom } from '../../src/service/faults/faults.ts';
import type { FaultSettings } from '../../src/service/faults/switches.ts';
import { effort, testSeed } from '../support/effort.ts';
import { startTestGateway, type TestGateway } from '../support/gateway.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { type Answered, rpc } from '../support/service-client.ts';
import { RandomClient } from './random-client.ts';
import { bytesOf } from './tree-model.ts';
import { storedBytes, truthBelow } from './upstream-truth.ts';

/** Operations of one scenario, by all its clients. */
const OPERATIONS = effort(15);
/** Part of each test's title: the same seed makes the same choices. */
const SEED = testSeed();
const CLIENTS = 3;
/** A disturbance that meets a commit of the gateway costs the account a pause of a second. */
const DISTURBANCES_MAX = 4;
/** Operations of a client from one disturbance to the next. */
const DISTURBED_EVERY = 5;

interface Scenario {
  readonly faults: FaultSettings;
  /** The gateway gives up soon, so that operations fail. */
  readonly deadlineMs?: number;
  /**
   * Whether davgate absorbs all of it, so that no operation may fail. How many fail of the others is up to chance and to
   * how busy the machine is: what counts is that each of them did all of its work or nothing.
   */
  readonly isAbsorbed: boolean;
  /** Writes are acknowledged when they are in the journal. */
  readonly writeBack?: boolean;
  /** Somebody else commits in the same namespace now and then. */
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
  'slow calls on slow lines': {
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
  'everything together, given up early': {
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
  'a journal, no fault': { faults: {}, isAbsorbed: true, writeBack: true },
  'a journal, lost answers': { faults: { 'lost-answer-share': 0.2 }, isAbsorbed: true, writeBack: true },
  'a journal, everything together': { faults: ALL_TOGETHER, isAbsorbed: false, writeBack: true },
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
    '%s: every operation of random clients does all of its work or nothing',
    async (name, scenario) => {
      const run = await start(name, scenario);
      const { clients } = run;
      try {
        await Promise.all(clients.map((client) => client.begin()));
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
        const troubles = clients.reduce((sum, client) => sum + client.troubles, 0);
        if (scenario.isAbsorbed) expect(troubles).toBe(0);
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

/** Checks that gateway and service have exactly what was acknowledged, byte for byte. */
async function compare(client: RandomClient, folder: string): Promise<void> {
  await client.compareAll();
  expect(await truthBelow(service, folder)).toEqual(client.tree.digest());
  for (const [path, node] of client.tree.nodes)
    if (node !== 'folder') expect((await storedBytes(service, path)).equals(bytesOf(node))).toBe(true);
}

function folderOf(scenario: string, index: number): string {
  return `/${scenario} ${index}`;
}
