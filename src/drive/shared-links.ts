import { isApiFailure } from '../api/errors.ts';
import type { LinkSettings, Remote, SharedLink } from '../api/remote.ts';
import type { Path } from '../util/path.ts';

type Links = Pick<Remote, 'sharedLink' | 'createSharedLink' | 'revokeSharedLink'>;

/** A link with these settings; the service keeps one a path, so one that is there goes first. */
export async function replaceLink(remote: Links, path: Path, settings: LinkSettings): Promise<SharedLink> {
  try {
    return await remote.createSharedLink(path, settings);
  } catch (error) {
    if (!isApiFailure(error, 'link-exists')) throw error;
  }
  await revokeLink(remote, path);
  return remote.createSharedLink(path, settings);
}

/** Ends the link, if there is one. */
export async function revokeLink(remote: Links, path: Path): Promise<void> {
  const link = await remote.sharedLink(path);
  if (!link) return;
  try {
    await remote.revokeSharedLink(link.url);
  } catch (error) {
    if (!isApiFailure(error, 'link-gone')) throw error;
  }
}
