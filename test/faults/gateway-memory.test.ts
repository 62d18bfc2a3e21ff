import { expect, test } from 'vitest';
import { seededRandom } from '../../src/service/faults/faults.ts';
import { effort } from '../support/effort.ts';
import { startTestGateway } from '../support/gateway.ts';
import { usedBytes } from '../support/memory-use.ts';
import { startTestService } from '../support/service.ts';
import { RandomClient } from './random-client.ts';

/** Number of operations of one round, of all clients together. */
const OPERATIONS = effort(24);
const ROUNDS = 6;
/** Number of rounds after which all pooled buffers exist. */
const WARM_ROUNDS = 3;
const CLIENTS = 3;
/** Maximum growth, in bytes: above the normal variation of a process. A large file has 10 MiB. */
const GROWTH_BYTES_MAX = 16 * 1024 ** 2;

test('random requests to a gateway whose service fails at random let its memory grow by less than 16 MiB', async () => {
  const service = await startTestService();
  const random = seededRandom(5);
  const gateway = await startTestGateway({ service, random: () => random() / 20, deadlineMs: 50 });
  const clients = Array.from({ length: CLIENTS }, (_, index) => {
    const folder = `/client-${index}`;
    const chance = seededRandom(index);
    return new RandomClient({ service, url: gateway.url, folder, random: chance, readsPartsOfLarge: false });
  });
  try {
    await Promise.all(clients.map((client) => client.makeFolder()));
    service.service.setFaults({
      'error-metadata-share': 0.05,
      'error-read-share': 0.05,
      'error-write-share': 0.05,
      'lost-answer-share': 0.05,
      'cut-share': 0.1,
      'corrupt-share': 0.05,
      'token-lifetime-seconds': 1,
    });
    const used: number[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      for (const client of clients)
        for (let done = 0; done < OPERATIONS / CLIENTS; done++) await client.step();
      used.push(await usedBytes());
    }
    const warm = Math.max(...used.slice(0, WARM_ROUNDS));
    const later = used.slice(WARM_ROUNDS);
    expect(Math.min(...later) - warm).toBeLessThan(GROWTH_BYTES_MAX);
  } finally {
    for (const client of clients) client.close();
    await gateway.close();
    await service.close();
  }
});
