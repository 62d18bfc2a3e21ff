import { join } from 'node:path';
import { type Gateway, startGateway } from '../../src/app/gateway.ts';
import type { Log } from '../../src/util/log.ts';
import { Networks } from '../../src/util/networks.ts';
import type { TestRedis } from './redis.ts';
import type { TestService } from './service.ts';

export interface SharedGatewayParts {
  readonly service: TestService;
  readonly redis: Pick<TestRedis, 'url'>;
  /** Directory of this gateway alone. */
  readonly directory: string;
  readonly log: Log;
  /** The files that have checksums, as in `--checksums`. */
  readonly checksums?: 'given' | 'all';
}

/** Starts a gateway without authentication, one of several that share the account of `service` through `redis`. */
export function startSharedGateway(parts: SharedGatewayParts): Promise<Gateway> {
  const { service, redis, directory, log, checksums } = parts;
  const { url, token } = service;
  const drive = {
    name: 'default',
    service: { apiUrl: url, contentUrl: url, notifyUrl: url, credentials: { token } },
    root: '',
    deletePolicy: 'auto',
  } as const;
  const config = {
    listen: { host: '127.0.0.1', port: 0 },
    log: { level: 'info', format: 'text' } as const,
    logRequests: true,
    crossOrigins: [],
    trustedProxies: new Networks(),
    basePath: '',
    tls: undefined,
    publicUrl: undefined,
    dataDirectory: join(directory, 'data'),
    cacheDirectory: join(directory, 'cache'),
    writeMode: 'through' as const,
    checksums,
    redisUrl: redis.url,
    drives: [drive],
    users: undefined,
  };
  return startGateway(config, log);
}
