import { type Path, PathError } from '../util/path.ts';
import type {
  CreateSharedLinkWithSettingsArg,
  ListSharedLinksArg,
  ListSharedLinksResult,
  ModifySharedLinkSettingsArg,
  RevokeSharedLinkArg,
  SharedLinkMetadata,
  SharedLinkSettings,
} from '../wire/account.ts';
import type { Client } from './context.ts';
import { type DriveRoot, timeOf, timestampOf } from './drive-root.ts';
import { ApiError } from './errors.ts';
import type { LinkedEntry, LinkSettings, Remote, SharedLink } from './remote.ts';
import { parsed, readNull, rpcRequest } from './request.ts';
import type { Trouble } from './retry.ts';

type Sharing = Pick<
  Remote,
  'sharedLink' | 'sharedLinks' | 'createSharedLink' | 'changeSharedLink' | 'revokeSharedLink'
>;

/** Maximum number of pages of links, which have about 200 each. More show that the service loops. */
const PAGES_MAX = 1000;

/** The calls for shared links. */
export function sharingOf(client: Client): Sharing {
  const { caller, root } = client;
  return {
    sharedLink: (path, signal) => sharedLink(client, path, { signal }),
    sharedLinks: (path, signal) => sharedLinks(client, path, signal),

    async createSharedLink(path, settings, signal) {
      const wireSettings = settingsOf(settings);
      const arg: CreateSharedLinkWithSettingsArg = {
        // The root of an account cannot be shared: `belowRoot` throws for it.
        path: root.toWire(path) || root.belowRoot(path),
        // The service refuses an empty settings object.
        ...(Object.keys(wireSettings).length > 0 && { settings: wireSettings }),
      };
      return caller.call({
        request: rpcRequest('sharing/create_shared_link_with_settings', arg),
        lane: 'metadata',
        signal,
        read: ({ text }) => linkOf(parsed<SharedLinkMetadata>(text)),
        async resolve({ failure, outcomeUnknown, trouble }) {
          if (!outcomeUnknown || failure.error.failure !== 'link-exists') return undefined;
          const link = await sharedLink(client, path, { signal, trouble });
          return link && hasSettings(link, settings) ? { result: link } : undefined;
        },
      });
    },

    changeSharedLink(url, { expiresMs, ...change }, signal) {
      const arg: ModifySharedLinkSettingsArg = {
        url,
        settings: settingsOf({ ...change, ...(typeof expiresMs === 'number' && { expiresMs }) }),
        ...(expiresMs === 'never' && { remove_expiration: true }),
      };
      return caller.call({
        request: rpcRequest('sharing/modify_shared_link_settings', arg),
        lane: 'metadata',
        signal,
        read: ({ text }) => linkOf(parsed<SharedLinkMetadata>(text)),
      });
    },

    revokeSharedLink(url, signal) {
      const arg: RevokeSharedLinkArg = { url };
      return caller.call({
        request: rpcRequest('sharing/revoke_shared_link', arg),
        lane: 'metadata',
        signal,
        read: readNull,
        resolve: async ({ failure, outcomeUnknown }) =>
          outcomeUnknown && failure.error.failure === 'link-gone' ? { result: undefined } : undefined,
      });
    },
  };
}

async function sharedLink(
  { caller, root }: Client,
  path: Path,
  how: { readonly signal: AbortSignal | undefined; readonly trouble?: Trouble },
): Promise<SharedLink | undefined> {
  // Without `direct_only` the answer includes links to the folders above; without a path, all links.
  const arg: ListSharedLinksArg = { path: root.toWire(path), direct_only: true };
  if (arg.path === '') return undefined;
  return caller.call({
    request: rpcRequest('sharing/list_shared_links', arg),
    lane: 'metadata',
    read: ({ text }) => parsed<ListSharedLinksResult>(text).links.map(linkOf)[0],
    ...how,
  });
}

async function sharedLinks(
  { caller, root }: Client,
  path: Path | undefined,
  signal: AbortSignal | undefined,
): Promise<readonly LinkedEntry[]> {
  const route = 'sharing/list_shared_links';
  let arg: ListSharedLinksArg = path === undefined ? {} : { path: root.toWire(path), direct_only: true };
  if (arg.path === '') return [];
  const found: LinkedEntry[] = [];
  for (let page = 1; page <= PAGES_MAX; page++) {
    const { links, next } = await caller.call({
      request: rpcRequest(route, arg),
      lane: 'metadata',
      signal,
      read: ({ text }) => {
        const answer = parsed<ListSharedLinksResult>(text);
        return {
          links: answer.links.flatMap((metadata) => linkedEntryOf(root, metadata, path) ?? []),
          next: answer.has_more ? answer.cursor : undefined,
        };
      },
    });
    for (const link of links) found.push(link);
    if (next === undefined) return found;
    arg = { cursor: next };
  }
  throw new ApiError('unavailable', `${route}: the storage service sends pages without end`);
}

/** Reads a link with its entry, which is at `path` if that is given. Returns `undefined` outside the drive. */
function linkedEntryOf(
  root: DriveRoot,
  metadata: SharedLinkMetadata,
  path = placeOf(root, metadata),
): LinkedEntry | undefined {
  const kind = metadata['.tag'] === 'folder' ? 'folder' : 'file';
  return path === undefined ? undefined : { ...linkOf(metadata), kind, path };
}

/** Returns where the entry of a link is; `undefined` outside the drive, or for a name that no path can contain. */
function placeOf(root: DriveRoot, metadata: SharedLinkMetadata): Path | undefined {
  try {
    return root.linked(metadata);
  } catch (error) {
    if (error instanceof PathError) return undefined;
    throw error;
  }
}

/** Returns the settings under the names that every version of the API accepts. */
function settingsOf({ visibility, password, expiresMs }: LinkSettings): SharedLinkSettings {
  return {
    ...(visibility !== undefined && { requested_visibility: visibility }),
    ...(password !== undefined && { link_password: password }),
    ...(expiresMs !== undefined && { expires: timestampOf(expiresMs) }),
  };
}

/** Reads a link. Any visibility except a password counts as public, because everyone with the address gets in. */
function linkOf({ url, expires, link_permissions: permissions }: SharedLinkMetadata): SharedLink {
  if (typeof url !== 'string') throw new TypeError('a link without url');
  const visibility = permissions?.resolved_visibility?.['.tag'];
  const withPassword = visibility === 'password' || visibility === 'team_and_password';
  return {
    url,
    visibility: withPassword || permissions?.require_password === true ? 'password' : 'public',
    ...(expires !== undefined && { expiresMs: timeOf(expires) }),
  };
}

/** Compares the visible settings of a link: its password cannot be read. */
function hasSettings(link: SharedLink, { visibility = 'public', expiresMs }: LinkSettings): boolean {
  const expires = expiresMs === undefined ? undefined : timeOf(timestampOf(expiresMs));
  return link.visibility === visibility && link.expiresMs === expires;
}
