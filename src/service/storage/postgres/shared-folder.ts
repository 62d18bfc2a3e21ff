import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { makeFolder } from '../../../util/make-folder.ts';
import { blockFolder } from '../blocks/block-folder.ts';
import { type BlockPlace, uniqueName } from '../blocks/block-place.ts';
import { localDisk } from '../blocks/disk.ts';
import { DataDirectoryError } from '../errors.ts';
import { ArrivingFolder } from './arriving-folder.ts';

/** The file that says whose blocks are beside it. */
const OWNER = 'owner';

/** A folder of blocks that several processes share, and where this one receives them. */
export interface SharedFolder {
  readonly blocks: BlockPlace;
  /** On the same file system, because a block is moved to its place when it is complete. */
  readonly arriving: ArrivingFolder;
}

/**
 * Opens the part of `folder` that belongs to the service with this tag; two services never meet in one.
 * Throws `DataDirectoryError` if the service has blocks and they are not there, as in an empty mount point.
 */
export async function sharedFolder(folder: string, tag: string, hasBlocks: boolean): Promise<SharedFolder> {
  const blocks = existingSharedFolder(folder, tag, hasBlocks);
  const own = join(folder, tag);
  makeFolder(own);
  await writeFile(join(own, OWNER), tag);
  await blocks.prepare();
  const arriving = await ArrivingFolder.in(own);
  return {
    arriving,
    blocks: { ...blocks, newName: uniqueName, close: () => arriving.close() },
  };
}

/** Returns the blocks of the service with this tag in `folder`, without changing anything there. Throws as `sharedFolder`. */
export function existingSharedFolder(folder: string, tag: string, hasBlocks: boolean): BlockPlace {
  const own = join(folder, tag);
  if (hasBlocks && !existsSync(join(own, OWNER)))
    throw new DataDirectoryError(
      'unusable',
      `${folder} does not have the blocks of this service: mount it, or give the folder that the service had`,
    );
  return blockFolder(own, localDisk);
}
