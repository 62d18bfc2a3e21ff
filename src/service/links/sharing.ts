import type { LinkPermissions, SharedLinkMetadata } from '../../wire/account.ts';
import type { Account } from '../accounts/accounts.ts';
import { isSameSecret } from '../accounts/secrets.ts';
import { fileMetadata, wireTime } from '../api/metadata.ts';
import { exceptRoot } from '../api/paths.ts';
import type { ApiCaller } from '../api/route.ts';
import type { ServiceDeps } from '../deps.ts';
import { StorageError, type Stored } from '../storage/storage.ts';
import type { Link } from './links.ts';
import { type LinkAddress, linkUrl } from './url.ts';

/** A link with its existing item and its owner. `item` may be inside a linked folder. */
export interface OpenLink {
  readonly link: Link;
  readonly account: Account;
  readonly item: Stored;
}

export type ClosedLink = 'not-found' | 'expired';

/** Returns the link at this URL with its current item. Does not check whether the caller may see it. */
export function openLink(deps: ServiceDeps, address: LinkAddress): OpenLink | ClosedLink {
  const link = linkAt(deps, address);
  if (!link) return 'not-found';
  if (isExpired(link, deps.clock.now())) return 'expired';
  const account = deps.accountWithId(link.accountId);
  const linked = itemOf(deps, account, link.itemId);
  const item = linked && address.below.length > 0 ? below(deps, account, linked, address.below) : linked;
  return item ? { link, account, item } : 'not-found';
}

/** Returns the link that matches both halves of the URL. */
export function linkAt({ links }: ServiceDeps, { token, rlkey }: LinkAddress): Link | undefined {
  const link = links.withToken(token);
  return link && isSameSecret(rlkey, link.rlkey) ? link : undefined;
}

export function isExpired(link: Link, nowMs: number): boolean {
  return link.expiresMs !== undefined && link.expiresMs <= nowMs;
}

/** Returns the entry at an id or a path; `undefined` if there is none. */
export function itemOf({ storage }: ServiceDeps, account: Account, address: string): Stored | undefined {
  try {
    const item = storage.stat(account.namespace, address, false);
    return item.kind === 'deleted' ? undefined : item;
  } catch (error) {
    if (error instanceof StorageError && error.refusal.kind === 'lookup') return undefined;
    throw error;
  }
}

function below(
  deps: ServiceDeps,
  account: Account,
  folder: Stored,
  names: readonly string[],
): Stored | undefined {
  // A folder's link opens the folder's own content and nothing outside of it.
  const leadsOut = names.some((name) => name === '' || name === '.' || name === '..' || name.includes('/'));
  if (leadsOut || folder.kind !== 'folder') return undefined;
  return itemOf(deps, account, `${folder.pathDisplay}/${names.join('/')}`);
}

/** Returns SharedLinkMetadata. Only the owner sees the item's path. */
export function linkMetadata(
  deps: ServiceDeps,
  { link, item }: OpenLink,
  isOwner: boolean,
): SharedLinkMetadata {
  const common = {
    url: linkUrl(deps.webUrl(), link, item.name),
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

/**
 * The caller's item that a link to `path` leads to. A path that names an old revision means the file's current content,
 * because that is what a link shows.
 */
export function itemAt(deps: ServiceDeps, { account }: ApiCaller, path: string): Stored {
  const named = deps.storage.stat(account.namespace, exceptRoot(path, account.namespace), false);
  const item = named.kind === 'deleted' ? undefined : itemOf(deps, account, named.id);
  if (!item) throw new StorageError({ kind: 'lookup', tag: 'not_found' });
  return item;
}

/** Returns the folders that contain the item, the nearest first. */
export function foldersAbove(deps: ServiceDeps, { account }: ApiCaller, item: Stored): Stored[] {
  const names = item.pathLower.split('/').slice(1, -1);
  return names.flatMap((_, index) => {
    const path = `/${names.slice(0, names.length - index).join('/')}`;
    return itemOf(deps, account, path) ?? [];
  });
}
