import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ROOT } from '../../../src/util/path.ts';
import { at, openScripted, type Scripted } from '../../support/scripted-remote.ts';
import { ok, refuse } from '../../support/scripted-service.ts';

let scripted: Scripted;
beforeEach(async () => {
  scripted = await openScripted();
});
afterEach(() => scripted.close());

describe('quota', () => {
  const team = (more: Record<string, unknown> = {}) => ({
    '.tag': 'team',
    used: 700,
    allocated: 1000,
    user_within_team_space_allocated: 0,
    user_within_team_space_limit_type: { '.tag': 'off' },
    user_within_team_space_used_cached: 50,
    ...more,
  });

  test.each<[string, unknown, unknown]>([
    ['individual space', { '.tag': 'individual', allocated: 1000 }, { usedBytes: 300, allocatedBytes: 1000 }],
    ['team space', team(), { usedBytes: 700, allocatedBytes: 1000 }],
    [
      'a smaller limit of the member',
      team({
        user_within_team_space_allocated: 100,
        user_within_team_space_limit_type: { '.tag': 'stop_sync' },
      }),
      { usedBytes: 50, allocatedBytes: 100 },
    ],
    [
      'a larger limit of the member',
      team({
        user_within_team_space_allocated: 900,
        user_within_team_space_limit_type: { '.tag': 'stop_sync' },
      }),
      { usedBytes: 700, allocatedBytes: 1000 },
    ],
    [
      'a limit of the member that only warns',
      team({
        user_within_team_space_allocated: 100,
        user_within_team_space_limit_type: { '.tag': 'alert_only' },
      }),
      { usedBytes: 700, allocatedBytes: 1000 },
    ],
    ['an unknown kind of space', { '.tag': 'other' }, undefined],
  ])('quota returns the space that applies for %s', async (_whose, allocation, quota) => {
    scripted.service.on('users/get_space_usage', ok({ used: 300, allocation }));
    expect(await scripted.remote.quota()).toEqual(quota);
    expect(scripted.service.calls[0]?.body.toString()).toBe('null');
  });
});

test('account returns the id, display name and email address', async () => {
  const account = { account_id: 'dbid:1', email: 'ann@example.org', name: { display_name: 'Ann' } };
  scripted.service.on('users/get_current_account', ok(account));
  expect(await scripted.remote.account()).toEqual({
    id: 'dbid:1',
    displayName: 'Ann',
    email: 'ann@example.org',
  });
});

describe('shared links', () => {
  const CREATE = 'sharing/create_shared_link_with_settings';
  const link = {
    '.tag': 'file',
    url: 'https://files.example/scl/fi/1/f?rlkey=2&dl=0',
    name: 'f',
    link_permissions: { resolved_visibility: { '.tag': 'public' } },
  };

  test('createSharedLink without settings sends none, because the service refuses empty ones', async () => {
    scripted.service.on(CREATE, ok(link));
    expect(await scripted.remote.createSharedLink(at('/f'), {})).toEqual({
      url: link.url,
      visibility: 'public',
    });
    expect(scripted.service.calls[0]?.arg).toEqual({ path: '/f' });
  });

  test('createSharedLink sends visibility, password and expiry, and returns those of the new link', async () => {
    const { service, remote } = scripted;
    const made = {
      ...link,
      expires: '2030-01-01T00:00:00Z',
      link_permissions: { resolved_visibility: { '.tag': 'password' } },
    };
    service.on(CREATE, ok(made));
    const expiresMs = Date.UTC(2030, 0, 1);
    const settings = { visibility: 'password', password: 'secret', expiresMs } as const;
    expect(await remote.createSharedLink(at('/f'), settings)).toEqual({
      url: link.url,
      visibility: 'password',
      expiresMs,
    });
    expect(service.calls[0]?.arg).toEqual({
      path: '/f',
      settings: {
        requested_visibility: 'password',
        link_password: 'secret',
        expires: '2030-01-01T00:00:00Z',
      },
    });
  });

  test.each<[Record<string, unknown>, string]>([
    [{ '.tag': 'settings_error', settings_error: { '.tag': 'not_authorized' } }, 'link-settings'],
    [{ '.tag': 'settings_error', settings_error: { '.tag': 'invalid_settings' } }, 'link-settings'],
    [{ '.tag': 'settings_error', settings_error: { '.tag': 'moon_phase' } }, 'link-settings'],
    [{ '.tag': 'email_not_verified' }, 'no-permission'],
    [
      // The nested value describes a link to a file, not a conflict with a file.
      {
        '.tag': 'shared_link_already_exists',
        shared_link_already_exists: { '.tag': 'metadata', metadata: link },
      },
      'link-exists',
    ],
    [{ '.tag': 'path', path: { '.tag': 'not_found' } }, 'not-found'],
  ])('createSharedLink refused with %o fails with the right failure', async (error, failure) => {
    scripted.service.on(CREATE, refuse(error, 'x'));
    await expect(scripted.remote.createSharedLink(at('/f'), {})).rejects.toMatchObject({ failure });
  });

  test('sharedLink asks for links of exactly this path', async () => {
    scripted.service.on('sharing/list_shared_links', ok({ links: [], has_more: false }));
    expect(await scripted.remote.sharedLink(at('/f'))).toBeUndefined();
    expect(scripted.service.calls[0]?.arg).toEqual({ path: '/f', direct_only: true });
  });

  test('the root has no shared link and cannot get one, without a call', async () => {
    expect(await scripted.remote.sharedLink(ROOT)).toBeUndefined();
    await expect(scripted.remote.createSharedLink(ROOT, {})).rejects.toMatchObject({
      failure: 'no-permission',
    });
    expect(scripted.service.calls).toEqual([]);
  });

  test('revokeSharedLink of a link that is already revoked fails with link-gone', async () => {
    scripted.service.on(
      'sharing/revoke_shared_link',
      refuse({ '.tag': 'shared_link_not_found' }, 'shared_link_not_found'),
    );
    await expect(scripted.remote.revokeSharedLink(link.url)).rejects.toMatchObject({ failure: 'link-gone' });
  });
});
