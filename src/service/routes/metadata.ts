import { linkedSignal } from '../../util/abort.ts';
import type { ListFolderResult, Metadata } from '../../wire/files.ts';
import { BadArgument, BadCall, refused } from '../api/failures.ts';
import { type AskedFields, askedIn, metadata, withAsked } from '../api/metadata.ts';
import { addressOf, exceptRoot, pathOrRoot, readPath } from '../api/paths.ts';
import { noSuchGroup, templateError, templateFilter, templateIds } from '../api/property-groups.ts';
import { LISTING, LOOKUP, NO_REFUSALS } from '../api/refusals.ts';
import { type ApiCall, type ApiCaller, openRpc, type Route, rpc } from '../api/route.ts';
import { boolean, integer, optional, required, type StructOf, string, withDefault } from '../api/schema.ts';
import {
  checkStillThere,
  linkContinue,
  linkCursor,
  linkListing,
  linkPage,
  sharedLink,
  storageCursor,
} from '../links/shared-folder-listing.ts';
import type { OpenLink } from '../links/sharing.ts';
import type { CursorOwner, ListingScope, StoredPage } from '../storage/storage.ts';

const metadataArgument = {
  path: required(readPath),
  include_media_info: withDefault(boolean, false),
  include_deleted: withDefault(boolean, false),
  include_has_explicit_shared_members: withDefault(boolean, false),
  include_property_groups: optional(templateFilter),
};

/** Media info and property groups may be requested, and are never returned: this service has none. */
const getMetadata = rpc({
  name: 'files/get_metadata',
  scope: 'files.metadata.read',
  argument: metadataArgument,
  refusals: LOOKUP,
  handle: (call) => metadataAt(call, call.argument),
});

/** The deprecated function with which property groups were introduced. */
const alphaGetMetadata = rpc({
  name: 'files/alpha/get_metadata',
  scope: 'files.metadata.read',
  argument: { ...metadataArgument, include_property_templates: optional(templateIds) },
  refusals: LOOKUP,
  handle: (call) => {
    const problem = noSuchGroup(call.argument.include_property_templates);
    if (problem) throw refused(problem);
    return metadataAt(call, call.argument);
  },
});

async function metadataAt(
  { caller, storage }: ApiCall<ApiCaller>,
  argument: StructOf<typeof metadataArgument>,
): Promise<Metadata> {
  const { namespace } = caller.account;
  const item = await storage.stat(namespace, exceptRoot(argument.path, namespace), argument.include_deleted);
  return metadata(item, {
    explicitMembers: argument.include_has_explicit_shared_members,
    restorable: false,
  });
}

const LIST_LIMIT_MAX = 2000;
/** Entries of a page without `limit`, as at the real service. */
const LIST_LIMIT_DEFAULT = 500;

/** ListFolderArg, also the argument of get_latest_cursor. */
const listArgument = {
  path: required(pathOrRoot),
  recursive: withDefault(boolean, false),
  include_media_info: withDefault(boolean, false),
  include_deleted: withDefault(boolean, false),
  include_has_explicit_shared_members: withDefault(boolean, false),
  include_mounted_folders: withDefault(boolean, true),
  limit: withDefault(integer({ min: 1, max: LIST_LIMIT_MAX }), LIST_LIMIT_DEFAULT),
  shared_link: optional(sharedLink),
  include_property_groups: optional(templateFilter),
  include_non_downloadable_files: withDefault(boolean, true),
  include_restorable_info: withDefault(boolean, false),
};

type ListArgument = StructOf<typeof listArgument>;

/** Lists a folder of the user's, or one that is shared by a link. */
const listFolder = openRpc('app-or-user', {
  name: 'files/list_folder',
  scope: 'files.metadata.read',
  argument: listArgument,
  refusals: LOOKUP,
  handle: async (call) => {
    const { argument, storage } = call;
    const { owner, scope, opened } = await listed(call, argument);
    const page = await storage.list(owner, scope, argument.limit);
    if (opened) await checkStillThere(call, opened, owner);
    const asked = askedBy(argument);
    return opened ? linkPage(page, opened.link.token, asked) : listing(page, asked);
  },
});

const latestCursor = rpc({
  name: 'files/list_folder/get_latest_cursor',
  scope: 'files.metadata.read',
  argument: listArgument,
  refusals: LOOKUP,
  handle: async (call) => {
    const { owner, scope, opened } = await listed(call, call.argument);
    const cursor = await call.storage.latestCursor(owner, scope, call.argument.limit);
    if (opened) await checkStillThere(call, opened, owner);
    const ofLink = opened ? linkCursor(opened.link.token, cursor) : cursor;
    return { cursor: withAsked(ofLink, askedBy(call.argument)) };
  },
});

/** Continues a listing; after its end, returns what has changed since. */
const listContinue = openRpc('app-or-user', {
  name: 'files/list_folder/continue',
  scope: 'files.metadata.read',
  argument: { cursor: required(string({ minLength: 1 })) },
  refusals: LISTING,
  handle: async (call) => {
    const { inner, asked } = askedIn(call.argument.cursor);
    const inLink = await linkContinue(call, inner, asked);
    return inLink ?? listing(await call.storage.listContinue(userIn(call).owner, inner), asked);
  },
});

/**
 * Minimum duration of a long poll, in seconds. Without the real service's jitter, which spreads the load of many
 * servers.
 */
const POLL_SECONDS_MIN = 30;
const POLL_SECONDS_MAX = 480;

const longpoll = openRpc('none', {
  name: 'files/list_folder/longpoll',
  host: 'notify',
  scope: undefined,
  argument: {
    cursor: required(string({ minLength: 1 })),
    timeout: withDefault(integer({ min: POLL_SECONDS_MIN, max: POLL_SECONDS_MAX }), POLL_SECONDS_MIN),
  },
  refusals: LISTING,
  handle: async ({ argument, storage, signal, closing }) => {
    const cursor = storageCursor(argument.cursor);
    const stop = linkedSignal(signal, closing);
    try {
      return { changes: await storage.awaitChange(cursor, argument.timeout * 1000, stop.signal) };
    } catch (error) {
      // A service that stops answers its long polls at once: nothing has changed.
      if (closing.aborted) return { changes: false };
      throw error;
    } finally {
      stop.release();
    }
  },
});

/** Property groups are not supported, so there are no templates. */
const listTemplates = rpc({
  name: 'file_properties/templates/list_for_user',
  scope: 'files.metadata.read',
  argument: {},
  refusals: NO_REFUSALS,
  handle: () => ({ template_ids: [] }),
});

export const METADATA_ROUTES: readonly Route[] = [
  getMetadata,
  alphaGetMetadata,
  listFolder,
  latestCursor,
  listContinue,
  longpoll,
  listTemplates,
];

/** Returns the folder to list: the user's own, or that of a shared link, in which case `opened` is the link. */
async function listed(
  call: ApiCall<ApiCaller | undefined>,
  argument: ListArgument,
): Promise<{ readonly owner: CursorOwner; readonly scope: ListingScope; readonly opened?: OpenLink }> {
  if (argument.include_property_groups) throw refused(templateError(argument.include_property_groups));
  if (argument.shared_link) return await linkListing(call, argument.shared_link, plainScope(argument));
  const { owner, account } = userIn(call);
  return { owner, scope: scopeOf(argument, account.namespace) };
}

function scopeOf(argument: ListArgument, namespace: string): ListingScope {
  const scope = plainScope(argument);
  return { ...scope, path: addressOf(scope.path, namespace) };
}

function plainScope({ path, recursive, include_deleted: includeDeleted }: ListArgument): ListingScope {
  if (path === '/')
    throw new BadArgument('path: Specify the root folder as an empty string rather than as "/".');
  return { path: path.replace(SLASHES_AHEAD, '/'), recursive, includeDeleted };
}

/** rclone 1.60 lists a folder of the root as `//folder`, which the real service accepts here. */
const SLASHES_AHEAD = /^\/\/+(?=[^/])/;

function askedBy(argument: ListArgument): AskedFields {
  return {
    explicitMembers: argument.include_has_explicit_shared_members,
    restorable: argument.include_restorable_info,
  };
}

/** Returns the user. Throws for an app, which has no files. */
function userIn({ caller }: ApiCall<ApiCaller | undefined>): ApiCaller {
  if (!caller) throw new BadCall('An app without a user may call this function only with shared_link.');
  return caller;
}

function listing({ entries, cursor, hasMore }: StoredPage, asked: AskedFields): ListFolderResult {
  return {
    entries: entries.map((entry) => metadata(entry, asked)),
    cursor: withAsked(cursor, asked),
    has_more: hasMore,
  };
}
