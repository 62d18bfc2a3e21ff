import type { ListSharedLinksResult } from '../../wire/account.ts';
import { inRoot } from '../accounts/accounts.ts';
import { hashOfPassword } from '../accounts/secrets.ts';
import { type ApiRefusal, failure, refused } from '../api/failures.ts';
import { readPath } from '../api/paths.ts';
import { LOOKUP, NO_REFUSALS } from '../api/refusals.ts';
import { type ApiCaller, openDownload, openRpc, type Route, rpc } from '../api/route.ts';
import { boolean, integer, list, optional, required, string, union, withDefault } from '../api/schema.ts';
import { fileContent } from '../content/file-content.ts';
import type { ServiceDeps } from '../deps.ts';
import { accessLink, LINK_REFUSALS, linkFields, ownLink } from '../links/access.ts';
import { isExpired, type Link } from '../links/links.ts';
import { linkSettings, modifiedLink, type WantedLink, wantedLink } from '../links/settings.ts';
import {
  itemAt,
  itemOf,
  itemsOf,
  itemWithFolders,
  linkMetadata,
  type SeenLink,
  seenByOwner,
} from '../links/sharing.ts';

/** Creates a link. An item has one link; creating a second is an error that contains the first. */
const createLink = rpc({
  name: 'sharing/create_shared_link_with_settings',
  scope: 'sharing.write',
  argument: { path: required(readPath), settings: optional(linkSettings) },
  refusals: LOOKUP,
  handle: async (call) => {
    const { argument, caller, links, clock } = call;
    const wanted = wantedLink(argument.settings, clock.now());
    const passwordHash = wanted.password === undefined ? undefined : await hashOfPassword(wanted.password);
    const item = await itemAt(call, caller, argument.path);
    const { link, isNew } = await links.add(clock.now(), {
      accountId: caller.account.id,
      itemId: item.id,
      itemKind: item.kind,
      visibility: wanted.visibility,
      allowDownload: wanted.allowDownload,
      ...(passwordHash && { passwordHash }),
      ...(wanted.expiresMs !== undefined && { expiresMs: wanted.expiresMs }),
    });
    const made = { link, item, isOwner: true, path: item.pathLower };
    if (!isNew) throw alreadyExists(call, made, wanted);
    return linkMetadata(call, made);
  },
});

/** Links of one page of a listing without a path. */
const LINKS_PER_PAGE = 200;

/** Lists the links of one item (and the folders above it), or in pages those of the whole account. */
const listLinks = rpc({
  name: 'sharing/list_shared_links',
  scope: 'sharing.read',
  argument: {
    path: optional(readPath),
    cursor: optional(string()),
    direct_only: withDefault(boolean, false),
  },
  refusals: LOOKUP,
  handle: async (call) => {
    const { argument, caller } = call;
    if (argument.path === undefined) return await allLinks(call, caller, argument.cursor);
    const items = argument.direct_only
      ? [await itemAt(call, caller, argument.path)]
      : await itemWithFolders(call, caller, argument.path);
    const links = await call.links.ofItems(
      caller.account.id,
      items.map(({ id }) => id),
    );
    return { links: await existingLinks(call, caller, links), has_more: false };
  },
});

/** Revokes a link: its URL answers 404 from now on. */
const revokeLink = rpc({
  name: 'sharing/revoke_shared_link',
  scope: 'sharing.write',
  argument: { url: required(string()) },
  refusals: NO_REFUSALS,
  handle: async (call) => {
    const { token } = await ownLink(call, call.argument.url, 'shared_link_malformed');
    await call.links.remove(token);
    return null;
  },
});

/** Changes the named settings, and keeps the others. */
const modifyLink = rpc({
  name: 'sharing/modify_shared_link_settings',
  scope: 'sharing.write',
  argument: {
    url: required(string()),
    settings: required(linkSettings),
    remove_expiration: withDefault(boolean, false),
  },
  refusals: NO_REFUSALS,
  handle: async (call) => {
    const { argument, caller, links, clock } = call;
    const { token, itemId } = await ownLink(call, argument.url, 'shared_link_not_found');
    const password = argument.settings.link_password;
    const passwordHash = password ? await hashOfPassword(password) : undefined;
    const item = await itemOf(call, inRoot(caller.account), itemId);
    // Decides by the link as it is after the waits.
    const changed = (current: Link): Link => {
      const nowMs = clock.now();
      if (isExpired(current, nowMs)) throw refused(failure('shared_link_not_found'));
      const removeExpiration = argument.remove_expiration;
      return modifiedLink(current, argument.settings, { removeExpiration, nowMs, passwordHash });
    };
    const link = item && (await links.change(token, changed));
    if (!link) throw refused(failure('shared_link_not_found'));
    return linkMetadata(call, seenByOwner(caller.account, link, item));
  },
});

/** Returns the metadata of any link, for callers with its URL and, if it has one, its password. */
const linkMetadataOf = openRpc('app-or-user', {
  name: 'sharing/get_shared_link_metadata',
  scope: 'sharing.read',
  argument: linkFields,
  refusals: NO_REFUSALS,
  handle: async (call) => {
    return linkMetadata(call, await accessLink(call, call.argument));
  },
});

/** Downloads a linked file, or one inside a linked folder. */
const linkFile = openDownload({
  name: 'sharing/get_shared_link_file',
  scope: 'sharing.read',
  argument: linkFields,
  refusals: LINK_REFUSALS,
  handle: async (call) => {
    const opened = await accessLink(call, call.argument);
    const { item, link, account, isOwner } = opened;
    if (item.kind === 'folder') throw refused(failure('shared_link_is_directory'));
    if (!isOwner && !link.allowDownload) throw refused(failure('shared_link_access_denied'));
    const shared = { namespace: account.namespace, file: item };
    return fileContent(call, shared, linkMetadata(call, opened));
  },
});

const FOLDERS_MAX = 1000;

/** FolderAction: the permissions of the caller in a shared folder that a call asks about. */
const folderAction = union({
  change_options: null,
  disable_viewer_info: null,
  edit_contents: null,
  enable_viewer_info: null,
  invite_editor: null,
  invite_viewer: null,
  invite_viewer_no_comment: null,
  relinquish_membership: null,
  unmount: null,
  unshare: null,
  leave_a_copy: null,
  share_link: null,
  create_link: null,
  set_access_inheritance: null,
});

/** Folders are shared by links here, never with members. */
const listFolders = rpc({
  name: 'sharing/list_folders',
  scope: 'sharing.read',
  argument: {
    limit: withDefault(integer({ min: 1, max: FOLDERS_MAX }), FOLDERS_MAX),
    actions: optional(list(folderAction, { max: FOLDERS_MAX })),
  },
  refusals: NO_REFUSALS,
  handle: () => ({ entries: [] }),
});

export const SHARING_ROUTES: readonly Route[] = [
  createLink,
  listLinks,
  modifyLink,
  revokeLink,
  linkMetadataOf,
  linkFile,
  listFolders,
];

/** Returns the links that have not expired and whose item exists, also outside of where the caller's paths begin. */
async function existingLinks(
  deps: ServiceDeps,
  { account }: ApiCaller,
  links: readonly Link[],
): Promise<ListSharedLinksResult['links']> {
  const nowMs = deps.clock.now();
  const current = links.filter((link) => !isExpired(link, nowMs));
  const items = await itemsOf(
    deps,
    inRoot(account),
    current.map(({ itemId }) => itemId),
  );
  return current.flatMap((link, index) => {
    const item = items[index];
    return item ? [linkMetadata(deps, seenByOwner(account, link, item))] : [];
  });
}

async function allLinks(
  deps: ServiceDeps,
  caller: ApiCaller,
  cursor: string | undefined,
): Promise<ListSharedLinksResult> {
  if (cursor !== undefined && !/^\d{1,15}$/.test(cursor)) throw refused(failure('reset'));
  const links = await deps.links.ofAccount(caller.account.id, Number(cursor ?? 0), LINKS_PER_PAGE);
  const last = links.at(-1);
  return {
    links: await existingLinks(deps, caller, links),
    has_more: links.length === LINKS_PER_PAGE,
    ...(last && links.length === LINKS_PER_PAGE && { cursor: String(last.sequence) }),
  };
}

/** Returns the refusal of a second link. It contains the existing link only if that has the requested settings. */
function alreadyExists(deps: ServiceDeps, existing: SeenLink, wanted: WantedLink): ApiRefusal {
  const { link } = existing;
  const isAsWanted =
    wanted.visibility === link.visibility &&
    wanted.visibility !== 'password' &&
    wanted.expiresMs === link.expiresMs &&
    wanted.allowDownload === link.allowDownload;
  const tag = 'shared_link_already_exists';
  if (!isAsWanted) return refused(failure(tag));
  const metadata = { '.tag': 'metadata', metadata: linkMetadata(deps, existing) };
  return refused({ tags: [tag, 'metadata'], value: { '.tag': tag, [tag]: metadata } });
}
