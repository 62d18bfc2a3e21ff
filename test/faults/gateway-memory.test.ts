import { expect, test } from 'vitest';
import { seededRandom } from '../../src/service/faults/faults.ts';
import { effort } from '../support/effort.ts';
import { startTestGateway } from '../support/gateway.ts';
import { usedBytes } from '../support/memory-use.ts';
import { startTestService } from '../support/service.ts';
import { RandomClient } from './random-client.ts';

/** Number of operations of one round, of all clients together. */
const OPERATIONS = effort(24);
/** Number of rounds after which the memory is compared with that of the rounds before. */
const ROUNDS = 3;
/** How often it may have grown, because a slow machine makes some of the pooled buffers late. A leak grows each time. */
const GROWTHS_MAX = 3;
const CLIENTS = 3;
/** Maximum growth, in bytes: above the normal variation of a process. A large file has 10 MiB. */
const GROWTH_BYTES_MAX = 16 * 1024 ** 2;

test('random requests to a gateway whose service fails at random let its memory grow by less than 16 MiB once its buffers exist', async () => {
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
    /** Returns the memory that was used at the ends of some rounds. */
    const used = async () => {
      const all: number[] = [];
      for (let round = 0; round < ROUNDS; round++) {
        for (const client of clients)
          for (let done = 0; done < OPERATIONS / CLIENTS; done++) await client.step();
        all.push(await usedBytes());
      }
      return all;
    };
    const growths: number[] = [];
    for (let before = await used(); growths.length <= GROWTHS_MAX; ) {
      const after = await used();
      growths.push(Math.min(...after) - Math.max(...before));
      if ((growths.at(-1) ?? 0) < GROWTH_BYTES_MAX) break;
      before = after;
    }
    expect(growths.at(-1), growths.join(', ')).toBeLessThan(GROWTH_BYTES_MAX);
  } finally {
    for (const client of clients) client.close();
    await gateway.close();
    await service.close();
  }
});
