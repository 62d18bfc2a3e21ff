import type { ListFolderResult } from '../../api/wire.ts';
import { addressOf, exceptRoot } from '../addresses.ts';
import { BadCall } from '../failures.ts';
import { metadata } from '../metadata.ts';
import { pathOrRoot, readPath } from '../path-schemas.ts';
import { LISTING, LOOKUP } from '../refusals.ts';
import { openRpc, type Route, rpc } from '../route.ts';
import {
  boolean,
  integer,
  optional,
  required,
  type StructOf,
  string,
  unsupported,
  withDefault,
} from '../schema.ts';
import type { ListingScope, StoredPage } from '../storage/storage.ts';

/** Media, sharing members and property groups are accepted and never there: nothing here has any. */
const getMetadata = rpc({
  name: 'files/get_metadata',
  scope: 'files.metadata.read',
  argument: {
    path: required(readPath),
    include_media_info: withDefault(boolean, false),
    include_deleted: withDefault(boolean, false),
    include_has_explicit_shared_members: withDefault(boolean, false),
    include_property_groups: optional(unsupported),
  },
  refusals: LOOKUP,
  handle: ({ argument, caller, storage }) => {
    const { namespace } = caller.account;
    return metadata(storage.stat(namespace, exceptRoot(argument.path, namespace), argument.include_deleted));
  },
});

const LIST_LIMIT_MAX = 2000;
/** Of the real service, when no limit is given. */
const LIST_LIMIT_DEFAULT = 500;

/** ListFolderArg: get_latest_cursor takes the same. */
const listArgument = {
  path: required(pathOrRoot),
  recursive: withDefault(boolean, false),
  include_media_info: withDefault(boolean, false),
  include_deleted: withDefault(boolean, false),
  include_has_explicit_shared_members: withDefault(boolean, false),
  include_mounted_folders: withDefault(boolean, true),
  limit: withDefault(integer({ min: 1, max: LIST_LIMIT_MAX }), LIST_LIMIT_DEFAULT),
  shared_link: optional(unsupported),
  include_property_groups: optional(unsupported),
  include_non_downloadable_files: withDefault(boolean, true),
  include_restorable_info: withDefault(boolean, false),
};

const listFolder = rpc({
  name: 'files/list_folder',
  scope: 'files.metadata.read',
  argument: listArgument,
  refusals: LOOKUP,
  handle: ({ argument, caller, storage }) =>
    listing(storage.list(caller.owner, scopeOf(argument, caller.account.namespace), argument.limit)),
});

const latestCursor = rpc({
  name: 'files/list_folder/get_latest_cursor',
  scope: 'files.metadata.read',
  argument: listArgument,
  refusals: LOOKUP,
  handle: ({ argument, caller, storage }) => ({
    cursor: storage.latestCursor(caller.owner, scopeOf(argument, caller.account.namespace)),
  }),
});

/** The rest of a listing, and after it what changed since. */
const listContinue = rpc({
  name: 'files/list_folder/continue',
  scope: 'files.metadata.read',
  argument: { cursor: required(string({ minLength: 1 })) },
  refusals: LISTING,
  handle: ({ argument, caller, storage }) => listing(storage.listContinue(caller.owner, argument.cursor)),
});

/** Without the real service's jitter, which spares a fleet of servers and not one. */
const POLL_SECONDS_MIN = 30;
const POLL_SECONDS_MAX = 480;

const longpoll = openRpc({
  name: 'files/list_folder/longpoll',
  scope: undefined,
  argument: {
    cursor: required(string({ minLength: 1 })),
    timeout: withDefault(integer({ min: POLL_SECONDS_MIN, max: POLL_SECONDS_MAX }), POLL_SECONDS_MIN),
  },
  refusals: LISTING,
  handle: async ({ argument, storage, signal, closing }) => {
    const stop = AbortSignal.any([signal, closing]);
    try {
      return { changes: await storage.awaitChange(argument.cursor, argument.timeout * 1000, stop) };
    } catch (error) {
      // A service that stops lets its listeners go with what is true: nothing has changed.
      if (closing.aborted) return { changes: false };
      throw error;
    }
  },
});

export const METADATA_ROUTES: readonly Route[] = [
  getMetadata,
  listFolder,
  latestCursor,
  listContinue,
  longpoll,
];

function scopeOf(argument: StructOf<typeof listArgument>, namespace: string): ListingScope {
  if (argument.path === '/')
    throw new BadCall('request body: path: Specify the root folder as an empty string rather than as "/".');
  return {
    path: addressOf(argument.path, namespace),
    recursive: argument.recursive,
    includeDeleted: argument.include_deleted,
  };
}

function listing(page: StoredPage): ListFolderResult {
  return { entries: page.entries.map(metadata), cursor: page.cursor, has_more: page.hasMore };
}
