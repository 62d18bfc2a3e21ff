import { join } from 'node:path';
import type { Gateway } from '../../src/app/gateway.ts';
import { type LogFields, silentLog } from '../../src/util/log.ts';
import { GatewayClient } from './gateway.ts';
import { temporaryDirectory } from './program.ts';
import { startRedis, type TestRedis } from './redis.ts';
import type { TestService } from './service.ts';
import { startSharedGateway } from './shared-gateway.ts';

/** Gateways in this process that share one Redis and one account, composed as `davgate serve` does. */
export interface SharedGateways {
  readonly clients: readonly GatewayClient[];
  /** Their URLs, without a trailing slash. */
  readonly urls: readonly string[];
  /** Fields of the errors that the gateways logged. */
  readonly errors: readonly (LogFields | undefined)[];
  /** Starts another gateway, which may reach the account's service at another address. */
  add(url?: string): Promise<GatewayClient>;
  close(): Promise<void>;
}

export interface RedisGateways extends SharedGateways {
  readonly redis: TestRedis;
}

/** Starts `count` gateways on the Redis at an address. */
export async function startGatewaysOn(
  redis: Pick<TestRedis, 'url'>,
  service: TestService,
  count: number,
): Promise<SharedGateways> {
  const root = await temporaryDirectory();
  const gateways: Gateway[] = [];
  const clients: GatewayClient[] = [];
  const urls: string[] = [];
  const errors: (LogFields | undefined)[] = [];
  const log = { ...silentLog, error: (_: string, fields?: LogFields) => void errors.push(fields) };
  const add = async (url = service.url) => {
    const directory = join(root.path, String(gateways.length));
    const gateway = await startSharedGateway({ service: { ...service, url }, redis, directory, log });
    gateways.push(gateway);
    urls.push(gateway.url);
    const client = new GatewayClient(gateway.url);
    clients.push(client);
    return client;
  };
  for (let number = 0; number < count; number++) await add();
  return {
    clients,
    urls,
    errors,
    add,
    async close() {
      for (const client of clients) client.close();
      await Promise.all(gateways.map((gateway) => gateway.close()));
      await root.remove();
    },
  };
}

/** Starts `count` gateways on a fresh Redis. */
export async function startRedisGateways(service: TestService, count: number): Promise<RedisGateways> {
  const redis = await startRedis();
  const gateways = await startGatewaysOn(redis, service, count);
  return {
    ...gateways,
    redis,
    async close() {
      await gateways.close();
      await redis.close();
    },
  };
}
