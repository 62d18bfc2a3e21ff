import { expect } from 'vitest';

/** Expected metadata of files with the four bytes `text`, of folders and of accounts. */
export const TIME = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
const ID = expect.stringMatching(/^id:[\w-]{22}$/);
const REV = expect.stringMatching(/^[0-9a-f]{9,31}$/);
/** The content hash of the four bytes `text`: SHA-256 of their SHA-256. */
export const TEXT_HASH = 'aa10070a4e571b204bbdf6de20978f0f0c7710516dfd9b2721975b6ffcc693dc';

export function fileShape(path: string, name: string): Record<string, unknown> {
  return {
    name,
    path_lower: path.toLowerCase(),
    path_display: path,
    id: ID,
    client_modified: TIME,
    server_modified: TIME,
    rev: REV,
    size: 4,
    is_downloadable: true,
    content_hash: TEXT_HASH,
  };
}

export function folderShape(path: string, name: string): Record<string, unknown> {
  return { name, path_lower: path.toLowerCase(), path_display: path, id: ID };
}

/** Returns the FullAccount of a service's default account. */
export function accountShape(serviceUrl: string): Record<string, unknown> {
  const namespace = expect.stringMatching(/^\d+$/);
  return {
    account_id: expect.stringMatching(/^dbid:[\w-]{35}$/),
    name: {
      given_name: 'davgate',
      surname: 'Drive',
      familiar_name: 'davgate',
      display_name: 'davgate Drive',
      abbreviated_name: 'dD',
    },
    email: 'drive@davgate.invalid',
    email_verified: true,
    disabled: false,
    locale: 'en',
    referral_link: `${serviceUrl}/`,
    is_paired: false,
    account_type: { '.tag': 'pro' },
    root_info: { '.tag': 'user', root_namespace_id: namespace, home_namespace_id: namespace },
  };
}

/** Returns the LinkPermissions that the owner of a link gets. */
export function linkPermissions(visibility: 'public' | 'password' | 'no_one'): object {
  return {
    resolved_visibility: { '.tag': visibility },
    requested_visibility: { '.tag': visibility === 'password' ? 'password' : 'public' },
    effective_audience: { '.tag': visibility === 'no_one' ? 'no_one' : 'public' },
    require_password: visibility === 'password',
    can_revoke: true,
    visibility_policies: [
      { policy: { '.tag': 'public' }, resolved_policy: { '.tag': 'public' }, allowed: true },
      {
        policy: { '.tag': 'team_only' },
        resolved_policy: { '.tag': 'team_only' },
        allowed: false,
        disallowed_reason: { '.tag': 'user_not_on_team' },
      },
      { policy: { '.tag': 'password' }, resolved_policy: { '.tag': 'password' }, allowed: true },
    ],
    can_set_expiry: true,
    can_remove_expiry: true,
    allow_download: true,
    can_allow_download: true,
    can_disallow_download: true,
    allow_comments: false,
    team_restricts_comments: false,
  };
}
