import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type RunningService, type ServiceOptions, startService } from '../../src/service/server.ts';
import { systemClock } from '../../src/util/clock.ts';
import { silentLog } from '../../src/util/log.ts';
import { PROJECT_ROOT } from './build.ts';

export interface TestService {
  /** Base, content, notify and web address in one, without a slash at the end. */
  readonly url: string;
  /** An access token of the default account with all scopes; it does not expire. */
  readonly token: string;
  readonly refreshToken: string;
  readonly appKey: string;
  readonly appSecret: string;
  /** For more accounts, and tokens with fewer scopes. */
  readonly service: RunningService;
  readonly dataDirectory: string;
  close(): Promise<void>;
}

/** Nobody looks for idle clients in less than an hour, so that a manual clock counts the waits of requests alone. */
const NO_IDLE_LIMITS = {
  bodyIdleTimeoutMs: 86_400_000,
  answerIdleTimeoutMs: 86_400_000,
  unauthenticatedIdleTimeoutMs: 86_400_000,
};

/** Node cannot start a process from TypeScript: vitest's global setup has built it. */
const RENDER_PROCESS = pathToFileURL(join(PROJECT_ROOT, 'dist/service/previews/render-process.js'));

/**
 * The embedded storage service in this process, on a free port, with a provisioned account. It works in a
 * new temporary directory that goes when it closes, unless `dataDirectory` names one to keep. On a busy machine
 * no commit is refused for having waited too long.
 */
export async function startTestService(options: Partial<ServiceOptions> = {}): Promise<TestService> {
  const dataDirectory = options.dataDirectory ?? (await mkdtemp(join(tmpdir(), 'davgate-service-')));
  const service = await startService({
    listen: { host: '127.0.0.1', port: 0 },
    clock: systemClock,
    log: silentLog,
    commitWaitMs: Number.POSITIVE_INFINITY,
    renderProcess: RENDER_PROCESS,
    limits: NO_IDLE_LIMITS,
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
