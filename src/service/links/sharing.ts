import type { LinkPermissions, SharedLinkMetadata } from '../../wire/account.ts';
import { type Account, pathFromRoot } from '../accounts/accounts.ts';
import { isSameSecret } from '../accounts/secrets.ts';
import { fileMetadata, wireTime } from '../api/metadata.ts';
import { exceptRoot } from '../api/paths.ts';
import type { ApiCaller } from '../api/route.ts';
import type { ServiceDeps } from '../deps.ts';
import { notFound } from '../storage/errors.ts';
import { StorageError, type Stored } from '../storage/storage.ts';
import { isExpired, type Link } from './links.ts';
import { type LinkAddress, linkUrl } from './url.ts';

/** A link with its existing item and its owner. `item` may be inside a linked folder. */
export interface OpenLink {
  readonly link: Link;
  /** The owner, with its paths in its root. */
  readonly account: Account;
  readonly item: Stored;
  /** The address of `item` that begins with the linked item's id: it never leads out of the link. */
  readonly address: string;
}

/** A link as a caller sees it. */
export interface SeenLink {
  readonly link: Link;
  readonly item: Stored;
  readonly isOwner: boolean;
  /** The item's path where the owner's paths begin; absent for an item outside, and for callers who are not the owner. */
  readonly path?: string | undefined;
}

export type ClosedLink = 'not-found' | 'expired';

/**
 * Returns the link at this URL with its linked item. Does not check whether the caller may see it, and does not look below
 * that item: `itemBelow` does, for callers that may.
 */
export async function openLink(deps: ServiceDeps, address: LinkAddress): Promise<OpenLink | ClosedLink> {
  const link = await linkAt(deps, address);
  if (!link) return 'not-found';
  if (isExpired(link, deps.clock.now())) return 'expired';
  const account = await ownerOf(deps, link);
  const item = account && (await itemOf(deps, account, link.itemId));
  return item ? { link, account, item, address: link.itemId } : 'not-found';
}

/** Returns an open link with the item at `names` below its linked item; `undefined` if there is none. */
export async function itemBelow(
  deps: ServiceDeps,
  opened: OpenLink,
  names: readonly string[],
): Promise<OpenLink | undefined> {
  if (names.length === 0) return opened;
  const { link, account } = opened;
  // A folder's link opens the folder's own content and nothing outside of it.
  const leadsOut = names.some((name) => name === '' || name === '.' || name === '..' || name.includes('/'));
  if (leadsOut || link.itemKind !== 'folder') return undefined;
  // From the linked item's id on, because another folder could take its path in between.
  const address = `${link.itemId}/${names.join('/')}`;
  const item = await itemOf(deps, account, address);
  return item && { link, account, item, address };
}

/** Returns the account of a link or reference with its paths in its root; `undefined` if it was removed meanwhile. */
export async function ownerOf(
  { accounts, withHome }: ServiceDeps,
  { accountId }: { readonly accountId: string },
): Promise<Account | undefined> {
  const account = await accounts.find(accountId);
  return account && (await withHome(account));
}

/** Returns the link that matches both halves of the URL. */
export async function linkAt(
  { links }: ServiceDeps,
  { token, rlkey }: LinkAddress,
): Promise<Link | undefined> {
  const link = await links.withToken(token);
  return link && isSameSecret(rlkey, link.rlkey) ? link : undefined;
}

/** Returns the entry at an id or a path; `undefined` if there is none. */
export async function itemOf(
  deps: ServiceDeps,
  account: Account,
  address: string,
): Promise<Stored | undefined> {
  const [item] = await itemsOf(deps, account, [address]);
  return item;
}

/** Returns the entries at ids or paths as they are at one moment; `undefined` for an address without one. */
export async function itemsOf(
  { storage }: ServiceDeps,
  account: Account,
  addresses: readonly string[],
): Promise<(Stored | undefined)[]> {
  const found = await storage.statAll(account.namespace, addresses);
  return found.map((outcome) => {
    if (!(outcome instanceof StorageError)) return outcome;
    if (outcome.refusal.kind === 'lookup') return undefined;
    throw outcome;
  });
}

/** Returns a link as its owner sees it. `item` has its path in the owner's root. */
export function seenByOwner(owner: Account, link: Link, item: Stored): SeenLink {
  return { link, item, isOwner: true, path: pathFromRoot(owner, item.pathLower) };
}

/** Returns SharedLinkMetadata. */
export function linkMetadata(deps: ServiceDeps, { link, item, isOwner, path }: SeenLink): SharedLinkMetadata {
  const common = {
    url: linkUrl(deps.webUrl(), link, item.name),
    id: item.id,
    name: item.name,
    ...(link.expiresMs !== undefined && { expires: wireTime(link.expiresMs) }),
    ...(path !== undefined && { path_lower: path }),
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
export async function itemAt(deps: ServiceDeps, { account }: ApiCaller, path: string): Promise<Stored> {
  const [item] = await deps.storage.statAll(account.namespace, [await currentAddress(deps, account, path)]);
  if (!item || item instanceof StorageError) throw item ?? notFound();
  return item;
}

/** Like `itemAt`, with the folders that contain the item, the nearest first. */
export async function itemWithFolders(
  deps: ServiceDeps,
  { account }: ApiCaller,
  path: string,
): Promise<readonly Stored[]> {
  return await deps.storage.statWithFolders(account.namespace, await currentAddress(deps, account, path));
}

/** Returns the address of the current item of a path; of a path that names a revision, its file's id. */
async function currentAddress(
  { storage }: ServiceDeps,
  { namespace }: Account,
  path: string,
): Promise<string> {
  const address = exceptRoot(path, namespace);
  if (!address.startsWith('rev:')) return address;
  const revision = await storage.stat(namespace, address, false);
  return revision.kind === 'deleted' ? address : revision.id;
}
