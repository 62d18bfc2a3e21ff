import { isApiFailure } from '../api/errors.ts';
import type { LinkChange, LinkSettings, Remote, SharedLink } from '../api/remote.ts';
import type { Path } from '../util/path.ts';
import { FileError } from './errors.ts';

/** The calls for shared links. */
export type RemoteLinks = Pick<
  Remote,
  'sharedLink' | 'sharedLinks' | 'createSharedLink' | 'changeSharedLink' | 'revokeSharedLink'
>;

/** Creates a link with these settings. The service keeps one link per path, so an existing one is revoked first. */
export async function replaceLink(
  remote: RemoteLinks,
  path: Path,
  settings: LinkSettings,
): Promise<SharedLink> {
  try {
    return await remote.createSharedLink(path, settings);
  } catch (error) {
    if (!isApiFailure(error, 'link-exists')) throw error;
  }
  await revokeLinks(remote, path);
  return remote.createSharedLink(path, settings);
}

/** Revokes the link, if there is one. */
export async function revokeLinks(remote: RemoteLinks, path: Path): Promise<void> {
  const link = await remote.sharedLink(path);
  if (link) await revoke(remote, link.url);
}

/** Changes the link `url` of `path`. Throws `not-found` for any other link: a drive has no say over links outside. */
export async function changeLink(
  remote: RemoteLinks,
  path: Path,
  url: string,
  change: LinkChange,
): Promise<SharedLink> {
  const listed = await listedUrl(remote, path, url);
  return remote.changeSharedLink(listed, change);
}

/** Revokes the link `url` of `path`. Throws `not-found` for any other link. */
export async function revokeLink(remote: RemoteLinks, path: Path, url: string): Promise<void> {
  await revoke(remote, await listedUrl(remote, path, url));
}

async function revoke(remote: RemoteLinks, url: string): Promise<void> {
  try {
    await remote.revokeSharedLink(url);
  } catch (error) {
    if (!isApiFailure(error, 'link-gone')) throw error;
  }
}

/** Returns `url` as the service lists it for `path`. Throws `not-found`. */
async function listedUrl(remote: RemoteLinks, path: Path, url: string): Promise<string> {
  const links = await remote.sharedLinks(path);
  const listed = links.find((link) => withoutSession(link.url) === withoutSession(url));
  if (!listed) throw new FileError('not-found', `the link to ${path} is gone`);
  return listed.url;
}

/** Returns a link without `st`, which the service may add for a session. */
function withoutSession(url: string): string {
  if (!URL.canParse(url)) return url;
  const parsed = new URL(url);
  parsed.searchParams.delete('st');
  return parsed.href;
}
