import type { Dropbox, DropboxResponseError } from 'dropbox';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { accountShape } from '../../support/metadata-shapes.ts';
import { type SdkClients, sdkRefusal, startSdkService } from '../../support/sdk.ts';
import { SDK_ROWS } from '../../support/sdk-rows.ts';
import type { TestService } from '../../support/service.ts';

let service: TestService;
let clients: SdkClients;
let sdk: Dropbox;

beforeAll(async () => {
  ({ service, clients, sdk } = await startSdkService());
});
afterAll(() => service.close());

test('users/get_current_account: FullAccount', async () => {
  expect((await sdk.usersGetCurrentAccount()).result).toEqual(accountShape(service.url));
});

test('users/get_space_usage: SpaceUsage', async () => {
  await sdk.filesUpload({ path: '/Space', contents: 'text' });
  expect((await sdk.usersGetSpaceUsage()).result).toEqual({
    used: 4,
    allocation: { '.tag': 'individual', allocated: expect.any(Number) },
  });
});

test('check/user and check/app say what they are told, and nothing of nothing', async () => {
  expect((await sdk.checkUser({ query: 'here?' })).result).toEqual({ result: 'here?' });
  expect((await clients.app.checkApp({ query: 'here?' })).result).toEqual({ result: 'here?' });
  expect((await sdk.checkUser({})).result).toEqual({ result: '' });
});

test('a token without the scope, and one that was revoked', async () => {
  const account = service.service.addAccount({
    email: 'other@example.org',
    givenName: 'O',
    surname: 'T',
    mayDeletePermanently: false,
  });
  const token = await service.service.grant({ accountId: account.id, scopes: ['sharing.read'] });
  const other = clients.withToken(token);
  expect(await sdkRefusal(other.usersGetSpaceUsage())).toEqual({
    status: 401,
    summary: 'missing_scope',
    error: { '.tag': 'missing_scope', required_scope: 'account_info.read' },
  });
  expect((await other.authTokenRevoke()).result).toBeNull();
  expect(await sdkRefusal(other.usersGetSpaceUsage())).toEqual({
    status: 401,
    summary: 'invalid_access_token',
    error: { '.tag': 'invalid_access_token' },
  });
});

test('a call that is malformed is 400, and told in words', async () => {
  const failure = await sdk.filesGetMetadata({ path: 'no slash' }).catch((error: unknown) => error);
  const { status, error } = failure as DropboxResponseError<string>;
  const start =
    /^Error in call to API function "files\/get_metadata": request body: path: 'no slash' did not match pattern '/;
  expect([status, error]).toEqual([400, expect.stringMatching(start)]);
});

test('drove what the table says', () => {
  const rows = SDK_ROWS.users;
  expect(clients.driven(Object.keys(rows))).toEqual(rows);
});
