import type { LinkPermissions, SharedLinkMetadata } from '../../wire/account.ts';
import type { Account } from '../accounts/accounts.ts';
import { isSameSecret } from '../accounts/secrets.ts';
import { fileMetadata, wireTime } from '../metadata.ts';
import type { Rooms } from '../route.ts';
import { StorageError, type Stored } from '../storage/storage.ts';
import type { Link } from './links.ts';
import { type LinkAddress, linkUrl } from './url.ts';

/** A link whose item is there, and whose it is. `item` may lie below a linked folder. */
export interface OpenLink {
  readonly link: Link;
  readonly account: Account;
  readonly item: Stored;
}

export type ClosedLink = 'not-found' | 'expired';

/** The link at this address, with its item as it is now; says nothing of whether the asker may see it. */
export function openLink(rooms: Rooms, address: LinkAddress): OpenLink | ClosedLink {
  const link = linkAt(rooms, address);
  if (!link) return 'not-found';
  if (isExpired(link, rooms.clock.now())) return 'expired';
  const account = rooms.accountWithId(link.accountId);
  const linked = itemOf(rooms, account, link.itemId);
  const item = linked && address.below.length > 0 ? below(rooms, account, linked, address.below) : linked;
  return item ? { link, account, item } : 'not-found';
}

/** The link that both halves of the address name. */
export function linkAt({ links }: Rooms, { token, rlkey }: LinkAddress): Link | undefined {
  const link = links.withToken(token);
  return link && isSameSecret(rlkey, link.rlkey) ? link : undefined;
}

export function isExpired(link: Link, nowMs: number): boolean {
  return link.expiresMs !== undefined && link.expiresMs <= nowMs;
}

/** What an id or a path names; `undefined` if it names nothing (any more). */
export function itemOf({ storage }: Rooms, account: Account, address: string): Stored | undefined {
  try {
    const item = storage.stat(account.namespace, address, false);
    return item.kind === 'deleted' ? undefined : item;
  } catch (error) {
    if (error instanceof StorageError && error.refusal.kind === 'lookup') return undefined;
    throw error;
  }
}

function below(rooms: Rooms, account: Account, folder: Stored, names: readonly string[]): Stored | undefined {
  // Whoever holds a folder's link sees what is in the folder, and nothing beside it.
  const leadsOut = names.some((name) => name === '' || name === '.' || name === '..' || name.includes('/'));
  if (leadsOut || folder.kind !== 'folder') return undefined;
  return itemOf(rooms, account, `${folder.pathDisplay}/${names.join('/')}`);
}

/** SharedLinkMetadata. Only the owner is told where the item lies. */
export function linkMetadata(rooms: Rooms, { link, item }: OpenLink, isOwner: boolean): SharedLinkMetadata {
  const common = {
    url: linkUrl(rooms.webUrl(), link, item.name),
    id: item.id,
    name: item.name,
    ...(link.expiresMs !== undefined && { expires: wireTime(link.expiresMs) }),
    ...(isOwner && { path_lower: item.pathLower }),
    link_permissions: permissions(link, isOwner),
  };
  if (item.kind === 'folder') return { '.tag': 'folder', ...common };
  const { client_modified, server_modified, rev, size } = fileMetadata(item);
  return { '.tag': 'file', ...common, client_modified, server_modified, rev, size };
}

function permissions(link: Link, isOwner: boolean): LinkPermissions {
  const requested = link.visibility === 'password' ? 'password' : 'public';
  return {
    resolved_visibility: { '.tag': link.visibility },
    ...(isOwner && { requested_visibility: { '.tag': requested } }),
    effective_audience: { '.tag': link.visibility === 'no_one' ? 'no_one' : 'public' },
    require_password: link.visibility === 'password',
    can_revoke: isOwner,
    ...(!isOwner && { revoke_failure_reason: { '.tag': 'owner_only' } }),
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
    can_set_expiry: isOwner,
    can_remove_expiry: isOwner,
    allow_download: link.allowDownload,
    can_allow_download: isOwner,
    can_disallow_download: isOwner,
    allow_comments: false,
    team_restricts_comments: false,
  };
}
