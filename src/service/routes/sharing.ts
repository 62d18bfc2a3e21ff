import type { ListSharedLinksResult } from '../../api/wire-account.ts';
import { exceptRoot } from '../addresses.ts';
import { failure, type Refusal, refused } from '../failures.ts';
import { linkSettings, type WantedLink, wantedLink } from '../link-settings.ts';
import { type LinkAddress, parseLinkAddress } from '../link-url.ts';
import type { Link } from '../links.ts';
import { readPath } from '../path-schemas.ts';
import { LOOKUP, NO_REFUSALS } from '../refusals.ts';
import { type Caller, type Rooms, type Route, rpc } from '../route.ts';
import { boolean, optional, required, string, withDefault } from '../schema.ts';
import { hashOfPassword, isPassword } from '../secrets.ts';
import { isExpired, itemOf, linkMetadata, type OpenLink, openLink } from '../sharing.ts';
import { StorageError, type Stored } from '../storage/storage.ts';

/** An item has one link; asking for a second is an error that brings the first along. */
const createLink = rpc({
  name: 'sharing/create_shared_link_with_settings',
  scope: 'sharing.write',
  argument: { path: required(readPath), settings: optional(linkSettings) },
  refusals: LOOKUP,
  handle: async (call) => {
    const { argument, caller, links, clock } = call;
    const wanted = wantedLink(argument.settings, clock.now());
    const passwordHash = wanted.password === undefined ? undefined : await hashOfPassword(wanted.password);
    // From here to the insertion nothing waits, so two calls cannot both find no link.
    const item = itemAt(call, caller, argument.path);
    const existing = links.ofItem(caller.account.id, item.id);
    if (existing && isExpired(existing, clock.now())) links.remove(existing.token);
    else if (existing) throw alreadyExists(call, { link: existing, account: caller.account, item }, wanted);
    const link = links.add({
      accountId: caller.account.id,
      itemId: item.id,
      itemKind: item.kind,
      visibility: wanted.visibility,
      allowDownload: wanted.allowDownload,
      ...(passwordHash && { passwordHash }),
      ...(wanted.expiresMs !== undefined && { expiresMs: wanted.expiresMs }),
    });
    return linkMetadata(call, { link, account: caller.account, item }, true);
  },
});

/** Of a listing without a path. */
const LINKS_PER_PAGE = 200;

/** Of one item (and the folders above it), or in pages of the whole account. */
const listLinks = rpc({
  name: 'sharing/list_shared_links',
  scope: 'sharing.read',
  argument: {
    path: optional(readPath),
    cursor: optional(string()),
    direct_only: withDefault(boolean, false),
  },
  refusals: LOOKUP,
  handle: (call) => {
    const { argument, caller } = call;
    if (argument.path === undefined) return allLinks(call, caller, argument.cursor);
    const item = itemAt(call, caller, argument.path);
    const items = argument.direct_only ? [item] : [item, ...foldersAbove(call, caller, item)];
    const links = items.flatMap((one) => call.links.ofItem(caller.account.id, one.id) ?? []);
    return { links: alive(call, caller, links), has_more: false };
  },
});

/** Whoever has the address finds nothing from now on. */
const revokeLink = rpc({
  name: 'sharing/revoke_shared_link',
  scope: 'sharing.write',
  argument: { url: required(string()) },
  refusals: NO_REFUSALS,
  handle: ({ argument, caller, links }) => {
    const address = addressIn(argument.url);
    if (!address) throw refused(failure('shared_link_malformed'));
    const link = links.withToken(address.token);
    if (!link || link.rlkey !== address.rlkey) throw refused(failure('shared_link_not_found'));
    if (link.accountId !== caller.account.id) throw refused(failure('shared_link_access_denied'));
    links.remove(link.token);
    return null;
  },
});

/** Also of others' links, for who has the address and, where there is one, the password. */
const linkMetadataOf = rpc({
  name: 'sharing/get_shared_link_metadata',
  scope: 'sharing.read',
  argument: {
    url: required(string()),
    path: optional(string()),
    link_password: optional(string()),
  },
  refusals: NO_REFUSALS,
  handle: async (call) => {
    const { argument, caller } = call;
    const address = addressIn(argument.url);
    const below = (argument.path ?? '').split('/').filter(Boolean);
    const opened = address && openLink(call, { ...address, below: [...address.below, ...below] });
    if (!opened || typeof opened === 'string') throw refused(failure('shared_link_not_found'));
    const isOwner = opened.account.id === caller.account.id;
    if (!isOwner && !(await mayOpen(opened.link, argument.link_password)))
      throw refused(failure('shared_link_access_denied'));
    return linkMetadata(call, opened, isOwner);
  },
});

export const SHARING_ROUTES: readonly Route[] = [createLink, listLinks, revokeLink, linkMetadataOf];

function itemAt({ storage }: Rooms, { account }: Caller, path: string): Stored {
  const item = storage.stat(account.namespace, exceptRoot(path, account.namespace), false);
  if (item.kind === 'deleted') throw new StorageError({ kind: 'lookup', tag: 'not_found' });
  return item;
}

function foldersAbove(rooms: Rooms, { account }: Caller, item: Stored): Stored[] {
  const names = item.pathLower.split('/').slice(1, -1);
  return names.flatMap((_, index) => {
    const path = `/${names.slice(0, names.length - index).join('/')}`;
    return itemOf(rooms, account, path) ?? [];
  });
}

/** The links that still lead somewhere. */
function alive(rooms: Rooms, { account }: Caller, links: readonly Link[]): ListSharedLinksResult['links'] {
  const nowMs = rooms.clock.now();
  return links.flatMap((link) => {
    const item = isExpired(link, nowMs) ? undefined : itemOf(rooms, account, link.itemId);
    return item ? [linkMetadata(rooms, { link, account, item }, true)] : [];
  });
}

function allLinks(rooms: Rooms, caller: Caller, cursor: string | undefined): ListSharedLinksResult {
  if (cursor !== undefined && !/^\d{1,15}$/.test(cursor)) throw refused(failure('reset'));
  const links = rooms.links.ofAccount(caller.account.id, Number(cursor ?? 0), LINKS_PER_PAGE);
  const last = links.at(-1);
  return {
    links: alive(rooms, caller, links),
    has_more: links.length === LINKS_PER_PAGE,
    ...(last && links.length === LINKS_PER_PAGE && { cursor: String(last.sequence) }),
  };
}

/** With the link, unless other settings were asked for than it has: then it is no answer to the call. */
function alreadyExists(rooms: Rooms, existing: OpenLink, wanted: WantedLink): Refusal {
  const { link } = existing;
  const isAsWanted =
    wanted.visibility === link.visibility &&
    wanted.visibility !== 'password' &&
    wanted.expiresMs === link.expiresMs &&
    wanted.allowDownload === link.allowDownload;
  const tag = 'shared_link_already_exists';
  if (!isAsWanted) return refused(failure(tag));
  const metadata = { '.tag': 'metadata', metadata: linkMetadata(rooms, existing, true) };
  return refused({ tags: [tag, 'metadata'], value: { '.tag': tag, [tag]: metadata } });
}

async function mayOpen(link: Link, password: string | undefined): Promise<boolean> {
  if (link.visibility === 'no_one') return false;
  if (!link.passwordHash) return true;
  return password !== undefined && isPassword(password, link.passwordHash);
}

/** Whatever host it names: links made under an older address of the service stay good. */
function addressIn(url: string): LinkAddress | undefined {
  if (!URL.canParse(url)) return undefined;
  const { pathname, searchParams } = new URL(url);
  return parseLinkAddress(pathname, searchParams);
}
