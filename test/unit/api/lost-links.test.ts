import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { at, openScripted, type Scripted } from '../../support/scripted-remote.ts';
import { lose, ok, refuse } from '../../support/scripted-service.ts';

let scripted: Scripted;
beforeEach(async () => {
  scripted = await openScripted();
});
afterEach(() => scripted.close());

describe('links', () => {
  const CREATE = 'sharing/create_shared_link_with_settings';
  const exists = refuse({ '.tag': 'shared_link_already_exists' }, 'shared_link_already_exists');
  const link = {
    '.tag': 'file',
    url: 'https://files.example/s/1',
    name: 'f',
    link_permissions: { resolved_visibility: { '.tag': 'public' } },
  };

  test('one whose answer was lost is the one that is there', async () => {
    scripted.service
      .on(CREATE, lose, exists)
      .on('sharing/list_shared_links', ok({ links: [link], has_more: false }));
    expect(await scripted.remote.createSharedLink(at('/f'), {})).toMatchObject({ url: link.url });
  });

  test('but not one with other settings', async () => {
    scripted.service
      .on(CREATE, lose, exists)
      .on('sharing/list_shared_links', ok({ links: [link], has_more: false }));
    await expect(
      scripted.remote.createSharedLink(at('/f'), { visibility: 'password', password: 'x' }),
    ).rejects.toMatchObject({ failure: 'link-exists' });
  });

  test('one whose revocation was not acknowledged is gone', async () => {
    scripted.service.on(
      'sharing/revoke_shared_link',
      lose,
      refuse({ '.tag': 'shared_link_not_found' }, 'shared_link_not_found'),
    );
    await scripted.remote.revokeSharedLink(link.url);
    expect(scripted.service.callsOf('sharing/revoke_shared_link')).toHaveLength(2);
  });
});
