import { createRemote } from '../../src/api/client.ts';
import { systemClock } from '../../src/util/clock.ts';
import { silentLog } from '../../src/util/log.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { path, remoteContract } from './remote.contract.ts';

const overHttp = (service: TestService, root: string) =>
  createRemote({
    apiUrl: service.url,
    contentUrl: service.url,
    notifyUrl: service.url,
    credentials: {
      appKey: service.appKey,
      appSecret: service.appSecret,
      refreshToken: service.refreshToken,
    },
    root,
    clock: systemClock,
    log: silentLog,
  });

remoteContract('over HTTP, the whole account of the embedded service', async () => {
  const service = await startTestService();
  const remote = overHttp(service, '');
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
  const whole = overHttp(service, '');
  const folder = await whole.createFolder(path('/Team/Über uns'));
  await whole.close();
  const remote = overHttp(service, folder.path.toUpperCase());
  return {
    remote,
    async close() {
      await remote.close();
      await service.close();
    },
  };
});
