import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { at, openScripted, type Scripted } from '../../support/scripted-remote.ts';
import { lose, ok, refuse } from '../../support/scripted-service.ts';

let scripted: Scripted;
beforeEach(async () => {
  scripted = await openScripted();
});
afterEach(() => scripted.close());

describe('shared links whose answer is lost', () => {
  const CREATE = 'sharing/create_shared_link_with_settings';
  const exists = refuse({ '.tag': 'shared_link_already_exists' }, 'shared_link_already_exists');
  const link = {
    '.tag': 'file',
    url: 'https://files.example/s/1',
    name: 'f',
    link_permissions: { resolved_visibility: { '.tag': 'public' } },
  };

  test('createSharedLink whose answer was lost returns the link that exists', async () => {
    scripted.service
      .on(CREATE, lose, exists)
      .on('sharing/list_shared_links', ok({ links: [link], has_more: false }));
    expect(await scripted.remote.createSharedLink(at('/f'), {})).toMatchObject({ url: link.url });
  });

  test('createSharedLink whose answer was lost fails with link-exists when the existing link has other settings', async () => {
    scripted.service
      .on(CREATE, lose, exists)
      .on('sharing/list_shared_links', ok({ links: [link], has_more: false }));
    await expect(
      scripted.remote.createSharedLink(at('/f'), { visibility: 'password', password: 'x' }),
    ).rejects.toMatchObject({ failure: 'link-exists' });
  });

  test('revokeSharedLink whose answer was lost succeeds when the link is gone', async () => {
    scripted.service.on(
      'sharing/revoke_shared_link',
      lose,
      refuse({ '.tag': 'shared_link_not_found' }, 'shared_link_not_found'),
    );
    await scripted.remote.revokeSharedLink(link.url);
    expect(scripted.service.callsOf('sharing/revoke_shared_link')).toHaveLength(2);
  });
});
