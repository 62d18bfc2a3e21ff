import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { at, openScripted, type Scripted } from '../../support/scripted-remote.ts';
import { lose, ok, refuse } from '../../support/scripted-service.ts';

const LIST = 'sharing/list_shared_links';
const CHANGE = 'sharing/modify_shared_link_settings';

let scripted: Scripted;
beforeEach(async () => {
  scripted = await openScripted();
});
afterEach(() => scripted.close());

function wireLink(name: string, more: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    '.tag': 'file',
    url: `https://files.example/s/${name}`,
    name,
    path_lower: `/${name.toLowerCase()}`,
    link_permissions: { resolved_visibility: { '.tag': 'public' } },
    ...more,
  };
}

describe('the list of links', () => {
  test('the links of all pages are returned, with the letter case of their names', async () => {
    scripted.service.on(
      LIST,
      ok({ links: [wireLink('One')], has_more: true, cursor: 'c1' }),
      ok({ links: [], has_more: true, cursor: 'c2' }),
      ok({ links: [wireLink('Two', { '.tag': 'folder' })], has_more: false }),
    );
    expect(await scripted.remote.sharedLinks(undefined)).toEqual([
      { url: 'https://files.example/s/One', visibility: 'public', kind: 'file', path: '/One' },
      { url: 'https://files.example/s/Two', visibility: 'public', kind: 'folder', path: '/Two' },
    ]);
    expect(scripted.service.callsOf(LIST).map(({ arg }) => arg)).toEqual([
      {},
      { cursor: 'c1' },
      { cursor: 'c2' },
    ]);
  });

  test('links outside the root of the drive, and those without a path, are left out', async () => {
    await scripted.close();
    scripted = await openScripted({ root: '/Team' });
    const inside = wireLink('In.txt', { path_lower: '/team/sub/in.txt' });
    const links = [
      inside,
      wireLink('Out.txt'),
      wireLink('teamwork.txt', { path_lower: '/teamwork.txt' }),
      wireLink('nowhere', { path_lower: undefined }),
      wireLink('..', { path_lower: '/team/..' }),
    ];
    scripted.service.on(LIST, ok({ links, has_more: false }));
    expect(await scripted.remote.sharedLinks(undefined)).toMatchObject([{ path: '/sub/In.txt' }]);
  });

  test('the links of one path are asked for without those of the folders above', async () => {
    scripted.service.on(LIST, ok({ links: [wireLink('F')], has_more: false }));
    expect(await scripted.remote.sharedLinks(at('/f'))).toMatchObject([{ path: '/f' }]);
    expect(scripted.service.calls[0]?.arg).toEqual({ path: '/f', direct_only: true });
  });

  test('a list whose pages do not end fails with unavailable', async () => {
    scripted.service.on(LIST, ok({ links: [], has_more: true, cursor: 'again' }));
    await expect(scripted.remote.sharedLinks(undefined)).rejects.toMatchObject({ failure: 'unavailable' });
  });

  test('a cursor that the service has forgotten fails with reset', async () => {
    scripted.service.on(
      LIST,
      ok({ links: [], has_more: true, cursor: 'old' }),
      refuse({ '.tag': 'reset' }, 'reset'),
    );
    await expect(scripted.remote.sharedLinks(undefined)).rejects.toMatchObject({ failure: 'reset' });
  });
});

describe('a change of a link', () => {
  const url = 'https://files.example/s/f';

  test.each([
    [
      { visibility: 'password', password: 'sesame' } as const,
      { url, settings: { requested_visibility: 'password', link_password: 'sesame' } },
    ],
    [{ visibility: 'public' } as const, { url, settings: { requested_visibility: 'public' } }],
    [{ expiresMs: Date.UTC(2030, 0, 1) }, { url, settings: { expires: '2030-01-01T00:00:00Z' } }],
    [{ expiresMs: 'never' } as const, { url, settings: {}, remove_expiration: true }],
  ])('changeSharedLink with %o sends only what changes', async (change, arg) => {
    scripted.service.on(CHANGE, ok(wireLink('f')));
    expect(await scripted.remote.changeSharedLink(url, change)).toEqual({ url, visibility: 'public' });
    expect(scripted.service.calls[0]?.arg).toEqual(arg);
  });

  test('changeSharedLink whose answer was lost is sent again', async () => {
    scripted.service.on(CHANGE, lose, ok(wireLink('f')));
    await scripted.remote.changeSharedLink(url, { expiresMs: 'never' });
    expect(scripted.service.callsOf(CHANGE)).toHaveLength(2);
  });

  test.each([
    [{ '.tag': 'settings_error', settings_error: { '.tag': 'not_authorized' } }, 'link-settings'],
    [{ '.tag': 'shared_link_not_found' }, 'link-gone'],
    [{ '.tag': 'shared_link_access_denied' }, 'no-permission'],
    [{ '.tag': 'email_not_verified' }, 'no-permission'],
  ])('changeSharedLink refused with %o fails with %s', async (error, failure) => {
    scripted.service.on(CHANGE, refuse(error, 'x'));
    await expect(
      scripted.remote.changeSharedLink(url, { visibility: 'password', password: 'x' }),
    ).rejects.toMatchObject({ failure });
  });
});
