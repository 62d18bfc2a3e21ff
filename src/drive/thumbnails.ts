import type { Remote } from '../api/remote.ts';
import type { Path } from '../util/path.ts';
import { FileError, fileErrorOf } from './errors.ts';
import type { FileEntry, Files, Thumbnails } from './files.ts';
import type { LocalFiles } from './local-files.ts';

interface ThumbnailDeps {
  readonly remote: Pick<Remote, 'thumbnail'>;
  readonly files: Pick<Files, 'stat'>;
  readonly localFiles: Pick<LocalFiles, 'owns'>;
}

/** Asks the service for small images of its files. */
export function createThumbnails({ remote, files, localFiles }: ThumbnailDeps): Thumbnails {
  return {
    async thumbnail(path, rev, signal) {
      const file = await fileOf(files, path, signal);
      if (file.rev !== rev) throw outdated(path);
      if (file.sizeBytes === 0 || localFiles.owns(path)) throw noThumbnail(path);
      try {
        return await remote.thumbnail(file, signal);
      } catch (error) {
        throw fileErrorOf(error, path);
      }
    },
  };
}

/** Throws `not-found` or `is-a-folder`. */
export async function fileOf(
  files: Pick<Files, 'stat'>,
  path: Path,
  signal: AbortSignal | undefined,
): Promise<FileEntry> {
  const entry = await files.stat(path, signal);
  if (!entry) throw new FileError('not-found', `${path} is not there`);
  if (entry.kind === 'folder') throw new FileError('is-a-folder', `${path} is a folder`);
  return entry;
}

export function outdated(path: Path): FileError {
  return new FileError('not-found', `${path} has changed; list its folder again`);
}

export function noThumbnail(path: Path): FileError {
  return new FileError('unsupported', `the storage service has no small image of ${path}`);
}
