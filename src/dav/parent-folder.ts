import { FileError } from '../drive/errors.ts';
import { type Path, parentOf } from '../util/path.ts';
import type { Context } from './method.ts';

/** Throws `FileError` `parent-missing` (409) unless there is a folder for what is to be made at `path`. */
export async function requireParent({ drive, signal }: Context, path: Path): Promise<void> {
  const folder = parentOf(path);
  const parent = await drive.files.stat(folder, signal);
  if (parent?.kind !== 'folder')
    throw new FileError('parent-missing', `there is no folder ${folder}; make that first`);
}
