import { isApiFailure } from '../api/errors.ts';
import type { LinkSettings, Remote, SharedLink } from '../api/remote.ts';
import type { Path } from '../util/path.ts';

type RemoteLinks = Pick<Remote, 'sharedLink' | 'createSharedLink' | 'revokeSharedLink'>;

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
  await revokeLink(remote, path);
  return remote.createSharedLink(path, settings);
}

/** Revokes the link, if there is one. */
export async function revokeLink(remote: RemoteLinks, path: Path): Promise<void> {
  const link = await remote.sharedLink(path);
  if (!link) return;
  try {
    await remote.revokeSharedLink(link.url);
  } catch (error) {
    if (!isApiFailure(error, 'link-gone')) throw error;
  }
}
