import type { Dropbox, files, sharing } from 'dropbox';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { linkPermissions } from '../../support/metadata-shapes.ts';
import {
  type SdkClients,
  sdkBytesOf,
  sdkRefusal,
  sdkRefused,
  sdkResultOf,
  startSdkService,
} from '../../support/sdk.ts';
import { SDK_ROWS } from '../../support/sdk-rows.ts';
import type { TestService } from '../../support/service.ts';

let service: TestService;
let clients: SdkClients;
let sdk: Dropbox;
let app: Dropbox;
/** SDK client of another user of the same app. */
let otherUser: Dropbox;

beforeAll(async () => {
  ({ service, clients, sdk, app } = await startSdkService());
  const account = await service.service.addAccount({
    email: 'stranger@example.org',
    givenName: 'S',
    surname: 'T',
    mayDeletePermanently: false,
  });
  const scopes = ['sharing.read', 'sharing.write'] as const;
  otherUser = clients.withToken(await service.service.grant({ accountId: account.id, scopes }));
});
afterAll(() => service.close());

type Link = sharing.FileLinkMetadataReference | sharing.FolderLinkMetadataReference;

/** Uploads a file and creates a link to it. Returns the metadata of both. */
async function linked(
  path: string,
  settings?: sharing.SharedLinkSettings,
): Promise<[files.FileMetadata, Link]> {
  const { result: file } = await sdk.filesUpload({ path, contents: 'text' });
  const argument = settings ? { path, settings } : { path };
  const { result: link } = await sdk.sharingCreateSharedLinkWithSettings(argument);
  return [file, link as Link];
}

/** Returns the FileLinkMetadata that the owner gets. */
function fileLink(file: files.FileMetadata, url: unknown): Record<string, unknown> {
  const { id, name, path_lower, client_modified, server_modified, rev, size } = file;
  const link_permissions = linkPermissions('public');
  return {
    '.tag': 'file',
    url,
    id,
    name,
    path_lower,
    link_permissions,
    client_modified,
    server_modified,
    rev,
    size,
  };
}

/** Returns a link's metadata as other accounts get it: without its path and the rights of its owner. */
function asOthersSee({ path_lower: _, link_permissions, ...link }: Record<string, unknown>): object {
  const { requested_visibility: __, ...permissions } = link_permissions as Record<string, unknown>;
  return {
    ...link,
    link_permissions: {
      ...permissions,
      can_revoke: false,
      revoke_failure_reason: { '.tag': 'owner_only' },
      can_set_expiry: false,
      can_remove_expiry: false,
      can_allow_download: false,
      can_disallow_download: false,
    },
  };
}

const urlOf = (kind: 'fi' | 'fo') =>
  expect.stringMatching(new RegExp(`/scl/${kind}/[0-9a-f]{32}/[^/?]+\\?rlkey=[0-9a-f]{32}&dl=0$`));

/** A well-formed URL of no link. */
const NOWHERE = 'https://files.example/scl/fi/0123/x?rlkey=0123&dl=0';

describe('sharing/create_shared_link_with_settings', () => {
  test('sharingCreateSharedLinkWithSettings answers a link to a file and one to a folder, each with its tag', async () => {
    const [file, link] = await linked('/Shared/File');
    expect(link).toEqual(fileLink(file, urlOf('fi')));
    const expires = '2099-01-01T00:00:00Z';
    const settings = {
      requested_visibility: { '.tag': 'password' },
      link_password: 'secret',
      expires,
    } as const;
    const { result } = await sdk.sharingCreateSharedLinkWithSettings({ path: '/Shared', settings });
    expect(result).toEqual({
      '.tag': 'folder',
      url: urlOf('fo'),
      id: expect.stringMatching(/^id:/),
      name: 'Shared',
      expires,
      path_lower: '/shared',
      link_permissions: linkPermissions('password'),
    });
  });

  test('sharingCreateSharedLinkWithSettings answers its refusals', async () => {
    const create = (path: string, settings?: sharing.SharedLinkSettings) =>
      sdkRefusal(sdk.sharingCreateSharedLinkWithSettings(settings ? { path, settings } : { path }));
    expect(await create('/None')).toEqual(sdkRefused('path/not_found'));
    expect(await create('/a//b')).toEqual(sdkRefused('path/malformed_path'));
    const [, link] = await linked('/Again');
    expect(await create('/Again')).toEqual({
      status: 409,
      summary: 'shared_link_already_exists/metadata',
      error: {
        '.tag': 'shared_link_already_exists',
        shared_link_already_exists: { '.tag': 'metadata', metadata: link },
      },
    });
    expect(await create('/Again', { allow_download: false })).toEqual(
      sdkRefused('shared_link_already_exists'),
    );
    expect(await create('/Again', {})).toEqual(sdkRefused('settings_error/invalid_settings'));
    expect(await create('/Again', { audience: { '.tag': 'team' } })).toEqual(
      sdkRefused('settings_error/not_authorized'),
    );
  });
});

describe('sharing/list_shared_links', () => {
  test('sharingListSharedLinks answers the links of a path and those of the account', async () => {
    const [, inner] = await linked('/Listed/File');
    const { result: outer } = await sdk.sharingCreateSharedLinkWithSettings({ path: '/Listed' });
    const path = '/Listed/File';
    const { result: direct } = await sdk.sharingListSharedLinks({ path, direct_only: true });
    expect(direct).toEqual({ links: [inner], has_more: false });
    const { result: both } = await sdk.sharingListSharedLinks({ path });
    expect(both).toEqual({ links: [inner, outer], has_more: false });
    const { result: all } = await sdk.sharingListSharedLinks({});
    expect(all).toEqual({ links: expect.arrayContaining([inner, outer]), has_more: false });
  });

  test('sharingListSharedLinks answers its refusals', async () => {
    const list = (argument: sharing.ListSharedLinksArg) => sdkRefusal(sdk.sharingListSharedLinks(argument));
    expect(await list({ path: '/None' })).toEqual(sdkRefused('path/not_found'));
    expect(await list({ path: '/a//b' })).toEqual(sdkRefused('path/malformed_path'));
    expect(await list({ cursor: 'rubbish' })).toEqual(sdkRefused('reset'));
  });
});

describe('sharing/modify_shared_link_settings and revoke_shared_link', () => {
  test('sharingModifySharedLinkSettings answers the changed link, and sharingRevokeSharedLink null', async () => {
    const [, link] = await linked('/Modified');
    const expires = '2099-01-01T00:00:00Z';
    const { url } = link;
    const settings = { require_password: true, link_password: 'secret', expires };
    const { result: closed } = await sdk.sharingModifySharedLinkSettings({ url, settings });
    expect(closed).toEqual({ ...link, expires, link_permissions: linkPermissions('password') });
    const open = { url, settings: { require_password: false }, remove_expiration: true };
    expect((await sdk.sharingModifySharedLinkSettings(open)).result).toEqual(link);
    expect((await sdk.sharingRevokeSharedLink({ url })).result).toBeNull();
  });

  test('sharingModifySharedLinkSettings and sharingRevokeSharedLink answer their refusals', async () => {
    const [, { url }] = await linked('/Kept');
    const settings = { allow_download: false };
    const modify = (argument: sharing.ModifySharedLinkSettingsArgs) =>
      sdkRefusal(sdk.sharingModifySharedLinkSettings(argument));
    expect(await modify({ url: NOWHERE, settings })).toEqual(sdkRefused('shared_link_not_found'));
    expect(await modify({ url, settings: {} })).toEqual(sdkRefused('settings_error/invalid_settings'));
    expect(await modify({ url, settings: { audience: { '.tag': 'members' } } })).toEqual(
      sdkRefused('settings_error/not_authorized'),
    );
    const revoke = (address: string) => sdkRefusal(sdk.sharingRevokeSharedLink({ url: address }));
    expect(await revoke(NOWHERE)).toEqual(sdkRefused('shared_link_not_found'));
    expect(await revoke('rubbish')).toEqual(sdkRefused('shared_link_malformed'));
    const denied = sdkRefused('shared_link_access_denied');
    expect(await sdkRefusal(otherUser.sharingModifySharedLinkSettings({ url, settings }))).toEqual(denied);
    expect(await sdkRefusal(otherUser.sharingRevokeSharedLink({ url }))).toEqual(denied);
  });
});

describe('sharing/get_shared_link_metadata and get_shared_link_file', () => {
  test('sharingGetSharedLinkMetadata answers the owner with the path and an app without it', async () => {
    const [file, link] = await linked('/Read/File');
    const { url } = link;
    expect((await sdk.sharingGetSharedLinkMetadata({ url })).result).toEqual(link);
    const seen = asOthersSee(fileLink(file, url));
    expect((await app.sharingGetSharedLinkMetadata({ url })).result).toEqual(seen);
    const { result: owned } = await sdk.sharingGetSharedLinkFile({ url });
    expect([sdkResultOf(owned), sdkBytesOf(owned).toString()]).toEqual([link, 'text']);
  });

  test('sharingGetSharedLinkMetadata and filesListFolder answer a file in a linked folder without its path', async () => {
    const [file] = await linked('/Read in/File');
    const { result: link } = await sdk.sharingCreateSharedLinkWithSettings({
      path: '/Read in',
      settings: { require_password: true, link_password: 'secret' },
    });
    const { url } = link;
    const given = { url, path: '/File', link_password: 'secret' };
    const permissions = linkPermissions('password');
    const seen = asOthersSee({ ...fileLink(file, url), link_permissions: permissions });
    expect((await app.sharingGetSharedLinkMetadata(given)).result).toEqual(seen);
    const shared_link = { url, password: 'secret' };
    const { result: listed } = await app.filesListFolder({ path: '', shared_link });
    const { path_lower: _, path_display: __, ...entry } = file;
    expect(listed).toEqual({
      entries: [{ '.tag': 'file', ...entry }],
      cursor: expect.any(String),
      has_more: false,
    });
    const denied = sdkRefused('shared_link_access_denied');
    expect(await sdkRefusal(app.sharingGetSharedLinkMetadata({ url }))).toEqual(denied);
    expect(await sdkRefusal(otherUser.sharingGetSharedLinkFile({ ...given, link_password: 'x' }))).toEqual(
      denied,
    );
  });

  test('sharingGetSharedLinkMetadata and sharingGetSharedLinkFile answer their refusals', async () => {
    await sdk.filesCreateFolderV2({ path: '/Directory' });
    const { result: link } = await sdk.sharingCreateSharedLinkWithSettings({ path: '/Directory' });
    const { url } = link;
    const gone = sdkRefused('shared_link_not_found');
    for (const argument of [{ url: NOWHERE }, { url: 'rubbish' }, { url, path: '/None' }]) {
      expect(await sdkRefusal(sdk.sharingGetSharedLinkMetadata(argument))).toEqual(gone);
      expect(await sdkRefusal(sdk.sharingGetSharedLinkFile(argument))).toEqual(gone);
    }
    expect(await sdkRefusal(sdk.sharingGetSharedLinkFile({ url }))).toEqual(
      sdkRefused('shared_link_is_directory'),
    );
  });
});

test('the tests of sharing called exactly the functions in SDK_ROWS and saw their refusals', () => {
  const rows = SDK_ROWS.sharing;
  expect(clients.driven(Object.keys(rows))).toEqual(rows);
});
