import type { Dropbox, DropboxResponseError } from 'dropbox';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { accountShape } from '../../support/metadata-shapes.ts';
import { type SdkClients, sdkRefusal, sdkRefused, startSdkService } from '../../support/sdk.ts';
import { SDK_ROWS } from '../../support/sdk-rows.ts';
import type { TestService } from '../../support/service.ts';

let service: TestService;
let clients: SdkClients;
let sdk: Dropbox;

beforeAll(async () => {
  ({ service, clients, sdk } = await startSdkService());
});
afterAll(() => service.close());

test('usersGetCurrentAccount answers FullAccount', async () => {
  expect((await sdk.usersGetCurrentAccount()).result).toEqual(accountShape(service.url));
});

test('usersGetSpaceUsage answers SpaceUsage', async () => {
  await sdk.filesUpload({ path: '/Space', contents: 'text' });
  expect((await sdk.usersGetSpaceUsage()).result).toEqual({
    used: 4,
    allocation: { '.tag': 'individual', allocated: expect.any(Number) },
  });
});

test('checkUser and checkApp answer the query, and an absent query as empty', async () => {
  expect((await sdk.checkUser({ query: 'here?' })).result).toEqual({ result: 'here?' });
  expect((await clients.app.checkApp({ query: 'here?' })).result).toEqual({ result: 'here?' });
  expect((await sdk.checkUser({})).result).toEqual({ result: '' });
});

test('usersGetAccount and usersGetAccountBatch answer BasicAccount of any account by its id', async () => {
  const person = { email: 'known@example.org', givenName: 'K', surname: 'N', mayDeletePermanently: false };
  const { id } = await service.service.addAccount(person);
  const known = {
    account_id: id,
    name: {
      given_name: 'K',
      surname: 'N',
      familiar_name: 'K',
      display_name: 'K N',
      abbreviated_name: 'KN',
    },
    email: 'known@example.org',
    email_verified: true,
    disabled: false,
    is_teammate: false,
  };
  expect((await sdk.usersGetAccount({ account_id: id })).result).toEqual(known);
  const { account_id: own } = (await sdk.usersGetCurrentAccount()).result;
  const { result } = await sdk.usersGetAccountBatch({ account_ids: [id, own] });
  expect(result).toMatchObject([known, { account_id: own, is_teammate: false }]);
  const nobody = `dbid:${'A'.repeat(35)}`;
  expect(await sdkRefusal(sdk.usersGetAccount({ account_id: nobody }))).toEqual(sdkRefused('no_account'));
  expect(await sdkRefusal(sdk.usersGetAccountBatch({ account_ids: [id, nobody] }))).toEqual(
    sdkRefused('no_account', { no_account: nobody }),
  );
});

test('usersFeaturesGetValues answers unsupported features as disabled', async () => {
  const asked = [{ '.tag': 'file_locking' }, { '.tag': 'paper_as_files' }] as const;
  const off = { '.tag': 'enabled', enabled: false };
  expect((await sdk.usersFeaturesGetValues({ features: [...asked] })).result).toEqual({
    values: [
      { '.tag': 'file_locking', file_locking: off },
      { '.tag': 'paper_as_files', paper_as_files: off },
    ],
  });
  expect(await sdkRefusal(sdk.usersFeaturesGetValues({ features: [] }))).toEqual(
    sdkRefused('empty_features_list'),
  );
});

test('sharingListFolders and filePropertiesTemplatesListForUser answer empty lists', async () => {
  expect((await sdk.sharingListFolders({})).result).toEqual({ entries: [] });
  expect((await sdk.filePropertiesTemplatesListForUser()).result).toEqual({ template_ids: [] });
});

test('usersGetSpaceUsage without the scope answers missing_scope, and with a revoked token invalid_access_token', async () => {
  const account = await service.service.addAccount({
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

test('filesGetMetadata of a malformed path answers 400 with a text', async () => {
  const failure = await sdk.filesGetMetadata({ path: 'no slash' }).catch((error: unknown) => error);
  const { status, error } = failure as DropboxResponseError<string>;
  const start =
    /^Error in call to API function "files\/get_metadata": request body: path: 'no slash' did not match pattern '/;
  expect([status, error]).toEqual([400, expect.stringMatching(start)]);
});

test('the tests of users called exactly the functions in SDK_ROWS and saw their refusals', () => {
  const rows = SDK_ROWS.users;
  expect(clients.driven(Object.keys(rows))).toEqual(rows);
});
