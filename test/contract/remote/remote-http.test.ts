import { expect, test } from 'vitest';
import { createRemote, type RemoteOptions } from '../../../src/api/client.ts';
import { systemClock } from '../../../src/util/clock.ts';
import { silentLog } from '../../../src/util/log.ts';
import { type Loss, startLossyProxy } from '../../support/lossy-proxy.ts';
import { path } from '../../support/paths.ts';
import { startTestService, type TestService } from '../../support/service.ts';
import { remoteContract } from './remote.contract.ts';
import type { OpenedRemote } from './remote-under-test.ts';

function overHttp(service: TestService, options: Partial<RemoteOptions> & { readonly url?: string } = {}) {
  const { url = service.url, ...more } = options;
  const { appKey, appSecret, refreshToken } = service;
  return createRemote({
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

remoteContract('over HTTP, the whole account of the embedded service', async () => {
  const service = await startTestService();
  const remote = overHttp(service);
  return {
    remote,
    async close() {
      await remote.close();
      await service.close();
    },
  };
});

remoteContract('over HTTP, a folder of the account whose case is written otherwise', async () => {
  const service = await startTestService();
  const whole = overHttp(service);
  const folder = await whole.createFolder(path('/Team/Über uns'));
  await whole.close();
  const remote = overHttp(service, { root: folder.path.toUpperCase() });
  return {
    remote,
    async close() {
      await remote.close();
      await service.close();
    },
  };
});

test('an entry is located outside a root while another folder of the account has it, and nowhere once it is gone', async () => {
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

/** The drive behaves as on a good line, whatever is lost: every single call, once. */
async function openLossy(loss: Loss): Promise<OpenedRemote> {
  const service = await startTestService();
  const proxy = await startLossyProxy(service.url, loss);
  const remote = overHttp(service, { url: proxy.url, random: () => 0 });
  return {
    remote,
    async close() {
      await remote.close();
      await proxy.close();
      await service.close();
      expect(proxy.losses()).toBeGreaterThan(50);
    },
  };
}

remoteContract('over HTTP, every call lost before it arrives', () => openLossy('before'));
remoteContract('over HTTP, every answer lost', () => openLossy('after'));
remoteContract('over HTTP, every answer replaced by 500', () => openLossy('replaced'));
