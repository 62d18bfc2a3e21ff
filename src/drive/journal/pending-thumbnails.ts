import type { Files, Thumbnails } from '../files.ts';
import { fileOf, noThumbnail, outdated } from '../thumbnails.ts';
import { tagOf } from './overlay-entries.ts';
import type { PendingFiles } from './pending-files.ts';

/** Finds the files below by the tags that clients see. A pending file has no small image until it has landed. */
export function createPendingThumbnails(
  base: Thumbnails,
  files: Pick<Files, 'stat'>,
  pending: PendingFiles,
): Thumbnails {
  return {
    async thumbnail(path, tag, signal) {
      if (pending.newest(path)) throw noThumbnail(path);
      const file = await fileOf(files, path, signal);
      if (tagOf(file) !== tag) throw outdated(path);
      return base.thumbnail(path, file.rev, signal);
    },
  };
}
