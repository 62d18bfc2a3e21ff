import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { FaultSettings } from '../../src/service/faults/switches.ts';
import { openRedisState } from '../../src/state/redis/state.ts';
import { systemClock } from '../../src/util/clock.ts';
import { silentLog } from '../../src/util/log.ts';
import { WAIT_MS } from './eventually.ts';
import { GatewayClient, startTestGateway } from './gateway.ts';
import type { TestRedis } from './redis.ts';
import { startTestService } from './service.ts';
import { UpstreamCalls } from './upstream-calls.ts';

/** What writes through the gateways of one account have cost. */
export interface Effort {
  /** The routes of the calls, in order. */
  readonly calls: readonly string[];
  /** Number of calls that the service has answered with 429. */
  readonly refusals: number;
  /** Answers to the clients other than 201. */
  readonly failed: readonly number[];
}

export interface Writes {
  readonly clients: number;
  readonly filesEach: number;
}

/** Lets clients write small files through `count` gateways that share a limited account through `redis`. */
export async function effortOf(
  redis: TestRedis,
  count: number,
  faults: FaultSettings,
  { clients, filesEach }: Writes,
): Promise<Effort> {
  const service = await startTestService();
  const states = await Promise.all(
    Array.from({ length: count }, () =>
      openRedisState({ url: redis.url, clock: systemClock, log: silentLog }),
    ),
  );
  const gateways = await Promise.all(
    states.map((state) => {
      const budget = state.budget?.(service.url);
      const turns = state.commitTurns?.(service.url);
      // A gateway that went on alone on a busy machine would not keep to the budget.
      const shared = budget && turns && { budget, turns, answerMsMax: WAIT_MS };
      return startTestGateway({ service, shared });
    }),
  );
  const users = Array.from(
    { length: clients },
    (_, number) => new GatewayClient(gateways[number % count]?.url ?? ''),
  );
  const upstream = new UpstreamCalls(service.url);
  let refusals = 0;
  const noteAnswer = (message: unknown) => {
    // The message that undici publishes on this channel.
    const { response } = message as { response: { statusCode: number } };
    if (response.statusCode === 429) refusals += 1;
  };
  subscribe('undici:request:headers', noteAnswer);
  try {
    await users[0]?.send('MKCOL', '/d');
    for (const user of users) await user.send('PROPFIND', '/d/', { headers: { depth: '1' } });
    upstream.take();
    service.service.setFaults(faults);

    const failed: number[] = [];
    await Promise.all(
      users.map(async (user, number) => {
        for (let file = 0; file < filesEach; file += 1) {
          const body = Buffer.from(`${number} ${file}`);
          const { status } = await user.send('PUT', `/d/${number}-${file}`, { body });
          if (status !== 201) failed.push(status);
        }
      }),
    );
    return { calls: upstream.take(), refusals, failed };
  } finally {
    unsubscribe('undici:request:headers', noteAnswer);
    service.service.setFaults({});
    for (const user of users) user.close();
    upstream.close();
    for (const gateway of gateways) await gateway.close();
    for (const state of states) await state.close();
    await service.close();
  }
}
