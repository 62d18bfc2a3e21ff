import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { finished } from '../../support/jobs.ts';
import { startTestService, type TestService } from '../../support/service.ts';
import { put, rpc } from '../../support/service-client.ts';

let service: TestService;

beforeAll(async () => {
  service = await startTestService({ steps: { removedRowsMax: 1 } });
});
afterAll(() => service.close());

test('several drives get no accounts of their own while the account that they shared has a file, also after many that are being removed', async () => {
  const names = ['/a', ...Array.from({ length: 10 }, (_, index) => `/b${index}`)];
  const paths = [...names, ...Array.from({ length: 3_000 }, (_, index) => `/a/${index}`)];
  await finished(service, 'create_folder_batch', { paths, force_async: true });
  await put(service, '/z', 'text');
  // The rows of the first folder are cleared away one by one, so that those of the others stay meanwhile.
  await Promise.all(names.map((path) => rpc(service, 'files/permanently_delete', { path })));
  const provisioned = () =>
    service.service.provisionDrives(
      ['one', 'two'].map((name) => ({ name, account: undefined, root: '' })),
      'serve',
    );
  await expect(provisioned()).rejects.toThrow('holds files from a time when all drives shared one account');
  await rpc(service, 'files/permanently_delete', { path: '/z' });
  await eventually(async () => expect([...(await provisioned()).keys()]).toEqual(['one', 'two']));
});
