import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createRemote } from '../../src/api/client.ts';
import { openSqliteState } from '../../src/state/sqlite/state.ts';
import type { DriveState } from '../../src/state/state.ts';
import { systemClock } from '../../src/util/clock.ts';
import { silentLog } from '../../src/util/log.ts';
import { openBlockCache } from '../../src/vfs/content.ts';
import { type OpenDrive, openDrive } from '../../src/vfs/drive.ts';
import { startTestService, type TestService } from './service.ts';

export interface ServiceDrive {
  readonly files: OpenDrive;
  readonly state: DriveState;
  readonly service: TestService;
  close(): Promise<void>;
}

/** A drive over the embedded service, over HTTP on loopback; `root` is the folder of the account it shows. */
export async function openServiceDrive({ root = '' } = {}): Promise<ServiceDrive> {
  const service = await startTestService();
  const directory = await mkdtemp(join(tmpdir(), 'davgate-drive-'));
  const { url, appKey, appSecret, refreshToken } = service;
  const remote = createRemote({
    apiUrl: url,
    contentUrl: url,
    notifyUrl: url,
    credentials: { appKey, appSecret, refreshToken },
    root,
    clock: systemClock,
    log: silentLog,
  });
  const stateStore = openSqliteState({ directory: join(directory, 'state') });
  const state = stateStore.drive('d');
  const cache = await openBlockCache({
    directory: join(directory, 'cache'),
    sizeBytesMax: 2 ** 28,
    log: silentLog,
  });
  const files = await openDrive({
    remote,
    state,
    cache,
    clock: systemClock,
    log: silentLog,
    deletePolicy: 'auto',
  });
  return {
    files,
    state,
    service,
    async close() {
      await files.close();
      await cache.close();
      await remote.close();
      await stateStore.close();
      await service.close();
      await rm(directory, { recursive: true });
    },
  };
}
