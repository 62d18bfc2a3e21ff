import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createRemote } from '../../src/api/client.ts';
import type { Remote } from '../../src/api/remote.ts';
import { openBlockCache } from '../../src/drive/content/block-cache.ts';
import { type OpenDrive, openDrive } from '../../src/drive/drive.ts';
import { openSqliteState } from '../../src/state/sqlite/state.ts';
import type { DriveState } from '../../src/state/state.ts';
import { systemClock } from '../../src/util/clock.ts';
import { silentLog } from '../../src/util/log.ts';
import { startTestService } from './service.ts';
import { unhurried } from './unhurried.ts';

export interface ServiceDrive {
  readonly files: OpenDrive;
  readonly state: DriveState;
  /** Another program with the same account, past the drive. */
  readonly other: Remote;
  close(): Promise<void>;
}

/** A drive over the embedded service, over HTTP on loopback; `root` is the folder of the account that it shows. */
export async function openServiceDrive({ root = '' } = {}): Promise<ServiceDrive> {
  const service = await startTestService();
  const directory = await mkdtemp(join(tmpdir(), 'davgate-drive-'));
  const { url, appKey, appSecret, refreshToken } = service;
  const connect = () =>
    createRemote({
      apiUrl: url,
      contentUrl: url,
      notifyUrl: url,
      credentials: { appKey, appSecret, refreshToken },
      root,
      clock: systemClock,
      log: silentLog,
    });
  const [remote, other] = [connect(), connect()];
  const stateStore = openSqliteState({ directory: join(directory, 'state') });
  const state = stateStore.drive('d');
  const cacheOptions = {
    directory: join(directory, 'cache'),
    sizeBytesMax: 2 ** 28,
    clock: systemClock,
    log: silentLog,
  };
  const cache = await openBlockCache(cacheOptions);
  const drive = { remote, state, cache, clock: systemClock, log: silentLog, deletePolicy: 'auto' } as const;
  const files = await openDrive(drive);
  return {
    files,
    state,
    other,
    async close() {
      await files.close(unhurried());
      await cache.close();
      await remote.close();
      await other.close();
      await stateStore.close();
      await service.close();
      await rm(directory, { recursive: true });
    },
  };
}
