import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createRemote } from '../../src/api/client.ts';
import type { Remote } from '../../src/api/remote.ts';
import { openBlockCache } from '../../src/drive/content/block-cache.ts';
import { type OpenDrive, openDrive } from '../../src/drive/drive.ts';
import { SCOPES } from '../../src/service/accounts/scopes.ts';
import { openSqliteState } from '../../src/state/sqlite/state.ts';
import type { DriveState } from '../../src/state/state.ts';
import { systemClock } from '../../src/util/clock.ts';
import { silentLog } from '../../src/util/log.ts';
import type { TestService } from './service.ts';
import { unhurried } from './unhurried.ts';

export interface ServiceDrive {
  readonly files: OpenDrive;
  readonly state: DriveState;
  /** A `Remote` of the same account that bypasses the drive. */
  readonly other: Remote;
  close(): Promise<void>;
}

let accounts = 0;

/** Opens a drive over HTTP on a new account of `service`. `root` is the drive's folder in the account. */
export async function openServiceDrive({ service, url }: TestService, root = ''): Promise<ServiceDrive> {
  const email = `drive-${++accounts}@example.org`;
  const account = await service.addAccount({
    email,
    givenName: 'A',
    surname: 'B',
    mayDeletePermanently: true,
  });
  const token = await service.grant({ accountId: account.id, scopes: SCOPES });
  const directory = await mkdtemp(join(tmpdir(), 'davgate-drive-'));
  const connect = () =>
    createRemote({
      apiUrl: url,
      contentUrl: url,
      notifyUrl: url,
      credentials: { token },
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
      await rm(directory, { recursive: true });
    },
  };
}
