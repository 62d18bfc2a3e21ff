import { failure, refused } from '../api/failures.ts';
import { wireTime } from '../api/metadata.ts';
import { readPath } from '../api/paths.ts';
import { LOOKUP, NO_REFUSALS } from '../api/refusals.ts';
import { type ApiCall, type ApiCaller, type Route, rpc } from '../api/route.ts';
import { boolean, optional, required, string, union, withDefault } from '../api/schema.ts';
import type { ServiceDeps } from '../deps.ts';
import type { Link } from '../links/links.ts';
import { foldersAbove, isExpired, itemAt, itemOf, linkMetadata, type OpenLink } from '../links/sharing.ts';
import { StorageError, type Stored } from '../storage/storage.ts';

/** The first version: an existing link is the result instead of an error. */
const createLink = rpc({
  name: 'sharing/create_shared_link',
  scope: 'sharing.write',
  argument: {
    path: required(readPath),
    // URLs have only one length here.
    short_url: withDefault(boolean, false),
    // Ignored: the real service makes links to files that are yet to be uploaded, this one only to existing items.
    pending_upload: optional(union({ file: null, folder: null })),
  },
  refusals: LOOKUP,
  handle: (call) => {
    const { argument, caller, links, clock } = call;
    const item = itemAt(call, caller, argument.path);
    const existing = links.ofItem(caller.account.id, item.id);
    const isOver = existing !== undefined && isExpired(existing, clock.now());
    if (isOver) links.remove(existing.token);
    const link =
      (isOver ? undefined : existing) ??
      links.add({
        accountId: caller.account.id,
        itemId: item.id,
        itemKind: item.kind,
        visibility: 'public',
        allowDownload: true,
      });
    return pathLink(call, { link, account: caller.account, item });
  },
});

/** Maximum number of links without a path. */
const LINKS_MAX = 1000;

/** The first version: links of an item and the folders above it, or of the whole account. */
const getLinks = rpc({
  name: 'sharing/get_shared_links',
  scope: 'sharing.read',
  argument: { path: optional(string()) },
  refusals: NO_REFUSALS,
  handle: (call) => {
    const { argument, caller, links } = call;
    const accountId = caller.account.id;
    const found = argument.path
      ? linkedItems(call, argument.path).flatMap((item) => links.ofItem(accountId, item.id) ?? [])
      : links.ofAccount(accountId, 0, LINKS_MAX);
    return { links: found.flatMap((link) => openPathLink(call, link)) };
  },
});

export const SHARING_V1_ROUTES: readonly Route[] = [createLink, getLinks];

/**
 * Returns the item at `path` and the folders above it; empty if nothing is there, because GetSharedLinksError has no
 * member for that.
 */
function linkedItems(call: ApiCall<ApiCaller>, path: string): readonly Stored[] {
  try {
    const item = itemAt(call, call.caller, path);
    return [item, ...foldersAbove(call, call.caller, item)];
  } catch (error) {
    if (!(error instanceof StorageError)) throw error;
    if (error.refusal.tag === 'malformed_path') throw refused(failure('path'));
    return [];
  }
}

function openPathLink(call: ApiCall<ApiCaller>, link: Link): object[] {
  const { account } = call.caller;
  const item = isExpired(link, call.clock.now()) ? undefined : itemOf(call, account, link.itemId);
  return item ? [{ '.tag': 'path', ...pathLink(call, { link, account, item }) }] : [];
}

/** Returns PathLinkMetadata. Its Visibility has no member for a link that admits nobody. */
function pathLink(deps: ServiceDeps, opened: OpenLink): object {
  const { link, item } = opened;
  return {
    url: linkMetadata(deps, opened, true).url,
    visibility: { '.tag': link.visibility === 'no_one' ? 'other' : link.visibility },
    ...(link.expiresMs !== undefined && { expires: wireTime(link.expiresMs) }),
    path: item.pathDisplay,
  };
}
