import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type RunningService, type ServiceOptions, startService } from '../../src/service/server.ts';
import { systemClock } from '../../src/util/clock.ts';
import { silentLog } from '../../src/util/log.ts';
import { PROJECT_ROOT } from './build.ts';
import { storesBeside } from './shared-stores.ts';

export interface TestService {
  /** The base, content, notify and web address, without a trailing slash. */
  readonly url: string;
  /** An access token of the default account with all scopes, which does not expire. */
  readonly token: string;
  readonly refreshToken: string;
  readonly appKey: string;
  readonly appSecret: string;
  /** The service itself, to add accounts and tokens. */
  readonly service: RunningService;
  readonly dataDirectory: string;
  close(): Promise<void>;
}

/**
 * Idle time-outs of a day, so that a manual clock counts the waits of requests alone, and connections for all clients of a
 * test at one address: over that limit an idle connection is closed, and a request that was just being sent on it fails.
 */
const LIMITS = {
  bodyIdleTimeoutMs: 86_400_000,
  answerIdleTimeoutMs: 86_400_000,
  unauthenticatedIdleTimeoutMs: 86_400_000,
  connectionsPerAddressMax: 10_000,
};

/** The render process, built by vitest's global setup because Node cannot start a TypeScript file. */
const RENDER_PROCESS = pathToFileURL(join(PROJECT_ROOT, 'dist/service/previews/render-process.js'));

/**
 * Starts the embedded storage service in this process on a free port with a provisioned account. It works in a
 * temporary directory, removed when it closes, unless `dataDirectory` is given. No commit is refused for
 * waiting too long on a busy machine.
 */
export async function startTestService(options: Partial<ServiceOptions> = {}): Promise<TestService> {
  const dataDirectory = options.dataDirectory ?? (await mkdtemp(join(tmpdir(), 'davgate-service-')));
  const service = await startService({
    ...(await storesBeside(dataDirectory)),
    listen: { host: '127.0.0.1', port: 0 },
    clock: systemClock,
    log: silentLog,
    commitWaitMs: Number.POSITIVE_INFINITY,
    renderProcess: RENDER_PROCESS,
    limits: LIMITS,
    ...options,
    dataDirectory,
  });
  const { token, refreshToken, appKey, appSecret } = await service.provision();
  return {
    url: service.url,
    token,
    refreshToken,
    appKey,
    appSecret,
    service,
    dataDirectory,
    async close() {
      await service.close();
      if (options.dataDirectory === undefined) await rm(dataDirectory, { recursive: true, force: true });
    },
  };
}
