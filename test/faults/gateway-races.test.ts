import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { seededRandom } from '../../src/service/faults/faults.ts';
import type { FaultSettings } from '../../src/service/faults/switches.ts';
import { effort } from '../support/effort.ts';
import { GatewayClient, startTestGateway, type TestGateway } from '../support/gateway.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { storedBytes } from './upstream-truth.ts';

const CLIENTS = 4;
/** Number of turns of each client. */
const TURNS = effort(3);

const LOSSY: FaultSettings = {
  'lost-answer-share': 0.3,
  'error-write-share': 0.1,
  'error-metadata-share': 0.1,
  'latency-write-ms': 3,
};

let service: TestService;
let gateway: TestGateway;
let clients: GatewayClient[];

async function open(deadlineMs?: number): Promise<void> {
  const random = seededRandom(1);
  gateway = await startTestGateway({
    service,
    random: () => random() / 20,
    ...(deadlineMs !== undefined && { deadlineMs }),
  });
  clients = Array.from({ length: CLIENTS }, () => new GatewayClient(gateway.url));
}

beforeEach(async () => {
  service = await startTestService();
});

afterEach(async () => {
  for (const client of clients) client.close();
  await gateway.close();
  await service.close();
});

describe.each([
  ['lost answers', undefined],
  ['lost answers and a deadline of 10 ms', 10],
])('a gateway with %s', (_, deadlineMs) => {
  beforeEach(() => open(deadlineMs));

  test('updates with If-Match while the service’s answers are lost are neither lost nor done twice', async () => {
    await clients[0]?.send('PUT', '/log', { body: Buffer.from('begin') });
    service.service.setFaults(LOSSY);
    const acknowledged: string[] = [];
    const unknown = new Set<string>();

    /** Appends `line` to the file; tries again after 412. */
    const append = async (client: GatewayClient, line: string): Promise<void> => {
      for (;;) {
        const read = await client.send('GET', '/log').catch(() => undefined);
        if (read?.status !== 200) continue;
        const headers = { 'if-match': String(read.headers.etag) };
        const body = Buffer.from(`${read.body}\n${line}`);
        const { status } = await client.send('PUT', '/log', { headers, body });
        if (status === 412) continue;
        if (status === 204) acknowledged.push(line);
        else {
          expect(status).toBeGreaterThanOrEqual(500);
          unknown.add(line);
        }
        return;
      }
    };
    await Promise.all(
      clients.map(async (client, number) => {
        for (let turn = 0; turn < TURNS; turn++) await append(client, `${number}-${turn}`);
      }),
    );
    service.service.setFaults({});
    const [begin, ...lines] = (await storedBytes(service, '/log')).toString().split('\n');
    expect(begin).toBe('begin');
    // A write whose answer was lost may be acknowledged after the next writer's, so the order is not compared.
    expect(lines.filter((line) => !unknown.has(line)).sort()).toEqual(acknowledged.sort());
    expect(new Set(lines).size).toBe(lines.length);
    if (deadlineMs === undefined) expect(unknown).toEqual(new Set());
  });

  test('of several PUTs at once with If-None-Match: * while the service’s answers are lost, at most one answers 201 and its bytes are stored', async () => {
    service.service.setFaults(LOSSY);
    for (let turn = 0; turn < TURNS * 2; turn++) {
      const path = `/new-${turn}`;
      const statuses = await Promise.all(
        clients.map(async (client, number) => {
          const headers = { 'if-none-match': '*' };
          return (await client.send('PUT', path, { headers, body: Buffer.from(`of ${number}`) })).status;
        }),
      );
      const winners = statuses.flatMap((status, number) => (status === 201 ? [number] : []));
      const hasFailures = statuses.some((status) => status >= 500);
      expect(winners.length).toBeLessThanOrEqual(1);
      if (!hasFailures) expect(winners).toHaveLength(1);
      if (deadlineMs === undefined) expect(hasFailures).toBe(false);
      expect(statuses.every((status) => status === 201 || status === 412 || status >= 500)).toBe(true);
      const [winner] = winners;
      if (winner === undefined) continue;
      // `LOSSY` has no faults of downloads.
      expect((await storedBytes(service, path)).toString()).toBe(`of ${winner}`);
    }
  });
});
