import { expect, test } from 'vitest';
import { type Connection, openConnection, type RemoteOptions, remoteOf } from '../../../src/api/client.ts';
import { uploadCallsOf } from '../../../src/api/write/upload-routes.ts';
import { systemClock } from '../../../src/util/clock.ts';
import { silentLog } from '../../../src/util/log.ts';
import { IS_LONG } from '../../support/effort.ts';
import { type Loss, startLossyProxy } from '../../support/lossy-proxy.ts';
import { path } from '../../support/paths.ts';
import { startTestService, type TestService } from '../../support/service.ts';
import { remoteContract } from './remote.contract.ts';
import { uploadCallsContract } from './upload-calls.contract.ts';

function connect(service: TestService, options: Partial<RemoteOptions> & { readonly url?: string } = {}) {
  const { url = service.url, ...more } = options;
  const { appKey, appSecret, refreshToken } = service;
  return openConnection({
    apiUrl: url,
    contentUrl: url,
    notifyUrl: url,
    credentials: { appKey, appSecret, refreshToken },
    root: '',
    clock: systemClock,
    log: silentLog,
    ...more,
  });
}

const overHttp = (...how: Parameters<typeof connect>) => remoteOf(connect(...how));

/** Runs both contracts on one connection, which is closed before the service. */
function httpContract(name: string, open: () => Promise<OpenedConnection>): void {
  const openBoth = async () => {
    const { connection, close } = await open();
    return {
      remote: remoteOf(connection),
      uploads: uploadCallsOf(connection.client),
      async close() {
        await connection.close();
        await close();
      },
    };
  };
  remoteContract(name, openBoth, uploadCallsContract);
}

interface OpenedConnection {
  readonly connection: Connection;
  close(): Promise<void>;
}

httpContract('over HTTP, the whole account of the embedded service', async () => {
  const service = await startTestService();
  return { connection: connect(service), close: () => service.close() };
});

httpContract('over HTTP, a folder of the account whose case is written otherwise', async () => {
  const service = await startTestService();
  const whole = overHttp(service);
  const folder = await whole.createFolder(path('/Team/Über uns'));
  await whole.close();
  const connection = connect(service, { root: folder.path.toUpperCase() });
  return { connection, close: () => service.close() };
});

test('locate returns "outside" while an entry is in another folder of the account, and nothing once it is removed', async () => {
  const service = await startTestService();
  const whole = overHttp(service);
  await whole.createFolder(path('/Drive'));
  const drive = overHttp(service, { root: '/Drive' });
  try {
    const made = await drive.createFolder(path('/made'));
    await whole.move(path('/Drive/made'), path('/Drive and more'));
    expect(await drive.locate(made.id)).toBe('outside');
    await whole.move(path('/Drive and more'), path('/Drive/back'));
    expect(await drive.locate(made.id)).toBe('/back');
    await whole.move(path('/Drive/back'), path('/Elsewhere/made'));
    await whole.remove(path('/Elsewhere/made'), { permanent: false });
    expect(await drive.locate(made.id)).toBeUndefined();
  } finally {
    await drive.close();
    await whole.close();
    await service.close();
  }
});

/** Opens a connection on which every single call is lost once; the remote must behave as without losses. */
async function openLossy(loss: Loss): Promise<OpenedConnection> {
  const service = await startTestService();
  const proxy = await startLossyProxy(service.url, loss);
  return {
    connection: connect(service, { url: proxy.url, random: () => 0 }),
    async close() {
      await proxy.close();
      await service.close();
      expect(proxy.losses()).toBeGreaterThan(50);
    },
  };
}

httpContract('over HTTP, every answer lost', () => openLossy('after'));
// What makes a lost answer harmless makes these harmless too.
if (IS_LONG) {
  httpContract('over HTTP, every call lost before it arrives', () => openLossy('before'));
  httpContract('over HTTP, every answer replaced by 500', () => openLossy('replaced'));
}
