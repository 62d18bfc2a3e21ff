import { statfs } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { accountShape } from '../../support/metadata-shapes.ts';
import { startTestService, type TestService } from '../../support/service.ts';
import { put, rpc } from '../../support/service-client.ts';

let service: TestService;

beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.close());

const call = (name: string, argument: unknown) => rpc(service, name, argument);

describe('users and check', () => {
  test('users/get_current_account answers FullAccount', async () => {
    expect((await call('users/get_current_account', null)).json).toEqual(accountShape(service.url));
  });

  test('users/get_space_usage counts stored bytes', async () => {
    // A separate account, because removals of other tests lower the usage in the background.
    const account = await service.service.addAccount({
      email: 'space@example.org',
      givenName: 'S',
      surname: 'P',
      mayDeletePermanently: false,
      limitBytes: 5000,
    });
    const token = await service.service.grant({
      accountId: account.id,
      scopes: ['account_info.read', 'files.content.write'],
    });
    const usage = async () => (await rpc(service, 'users/get_space_usage', null, { token })).json;
    const allocation = { '.tag': 'individual', allocated: 5000 };
    expect(await usage()).toEqual({ used: 0, allocation });
    await put({ ...service, token }, '/space', 'x'.repeat(1000));
    expect(await usage()).toEqual({ used: 1000, allocation });
  });

  test('users/get_space_usage allocates no more than the disk can hold', async () => {
    const { bavail, bsize } = await statfs(service.dataDirectory);
    const { json } = await call('users/get_space_usage', null);
    const { used, allocation } = json as { used: number; allocation: { allocated: number } };
    // 10 GiB of tolerance for other writers on the disk. Without the bound the allocation is 2 TiB.
    expect(allocation.allocated).toBeLessThan(used + bavail * bsize + 10 * 1024 ** 3);
    expect(allocation.allocated).toBeGreaterThanOrEqual(used);
  });

  test('check/user answers the query, and an absent query as empty', async () => {
    expect((await call('check/user', { query: 'ö' })).json).toEqual({ result: 'ö' });
    expect((await call('check/user', {})).json).toEqual({ result: '' });
  });
});
