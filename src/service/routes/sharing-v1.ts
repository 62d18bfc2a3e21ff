import { failure, refused } from '../api/failures.ts';
import { wireTime } from '../api/metadata.ts';
import { readPath } from '../api/paths.ts';
import { LOOKUP, NO_REFUSALS } from '../api/refusals.ts';
import { type ApiCall, type ApiCaller, type Route, rpc } from '../api/route.ts';
import { boolean, optional, required, string, union, withDefault } from '../api/schema.ts';
import type { ServiceDeps } from '../deps.ts';
import { isExpired, type Link } from '../links/links.ts';
import { itemAt, itemsOf, itemWithFolders, type OpenLink } from '../links/sharing.ts';
import { linkUrl } from '../links/url.ts';
import { StorageError } from '../storage/storage.ts';

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
  handle: async (call) => {
    const { argument, caller, links, clock } = call;
    const item = await itemAt(call, caller, argument.path);
    const { link } = await links.add(clock.now(), {
      accountId: caller.account.id,
      itemId: item.id,
      itemKind: item.kind,
      visibility: 'public',
      allowDownload: true,
    });
    return pathLink(call, { link, item });
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
  handle: async (call) => {
    const { argument, caller, links, clock } = call;
    const accountId = caller.account.id;
    const found = argument.path
      ? await links.ofItems(accountId, await linkedIds(call, argument.path))
      : await links.ofAccount(accountId, 0, LINKS_MAX);
    const current = found.filter((link) => !isExpired(link, clock.now()));
    return { links: await openPathLinks(call, current) };
  },
});

export const SHARING_V1_ROUTES: readonly Route[] = [createLink, getLinks];

/**
 * Returns the ids of the item at `path` and of the folders above it; empty if nothing is there, because GetSharedLinksError has no
 * member for that.
 */
async function linkedIds(call: ApiCall<ApiCaller>, path: string): Promise<readonly string[]> {
  try {
    return (await itemWithFolders(call, call.caller, path)).map(({ id }) => id);
  } catch (error) {
    if (!(error instanceof StorageError)) throw error;
    if (error.refusal.tag === 'malformed_path') throw refused(failure('path'));
    return [];
  }
}

/** Returns the links whose item exists where the caller's paths begin: PathLinkMetadata is never without a path. */
async function openPathLinks(call: ApiCall<ApiCaller>, links: readonly Link[]): Promise<object[]> {
  const { account } = call.caller;
  const items = await itemsOf(
    call,
    account,
    links.map(({ itemId }) => itemId),
  );
  return links.flatMap((link, index) => {
    const item = items[index];
    return item ? [{ '.tag': 'path', ...pathLink(call, { link, item }) }] : [];
  });
}

/** Returns PathLinkMetadata. Its Visibility has no member for a link that admits nobody. */
function pathLink(deps: ServiceDeps, { link, item }: Pick<OpenLink, 'link' | 'item'>): object {
  return {
    url: linkUrl(deps.webUrl(), link, item.name),
    visibility: { '.tag': link.visibility === 'no_one' ? 'other' : link.visibility },
    ...(link.expiresMs !== undefined && { expires: wireTime(link.expiresMs) }),
    path: item.pathDisplay,
  };
}
