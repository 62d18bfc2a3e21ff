import type { Path } from '../util/path.ts';
import type {
  CreateSharedLinkWithSettingsArg,
  ListSharedLinksArg,
  ListSharedLinksResult,
  RevokeSharedLinkArg,
  SharedLinkMetadata,
  SharedLinkSettings,
} from '../wire/account.ts';
import type { Client } from './context.ts';
import { timeOf, timestampOf } from './drive-root.ts';
import type { LinkSettings, Remote, SharedLink } from './remote.ts';
import { parsed, readNull, rpcRequest } from './request.ts';
import type { Trouble } from './retry.ts';

type Sharing = Pick<Remote, 'sharedLink' | 'createSharedLink' | 'revokeSharedLink'>;

/** The calls for shared links. */
export function sharingOf(client: Client): Sharing {
  const { caller, root } = client;
  return {
    sharedLink: (path, signal) => sharedLink(client, path, { signal }),

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
