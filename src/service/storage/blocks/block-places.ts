import { DataDirectoryError } from '../errors.ts';
import { blockFolder } from './block-folder.ts';
import type { OwnPlaces } from './block-store.ts';
import type { BucketAccess } from './bucket/bucket-address.ts';
import type { Contents } from './contents.ts';
import type { Disk } from './disk.ts';
import { IncomingFiles } from './incoming-files.ts';

interface BlockPlacesDeps {
  readonly dataDirectory: string;
  readonly disk: Disk;
  readonly contents: Contents;
  /** Tells the data directory from all others. */
  readonly directoryTag: string;
  /** A bucket for new blocks; `undefined` keeps them in the data directory. */
  readonly access: BucketAccess | undefined;
}

/** Returns where a service has its blocks. Throws `DataDirectoryError` if some are in a bucket and none is given. */
export async function blockPlaces(deps: BlockPlacesDeps): Promise<OwnPlaces> {
  const { dataDirectory, disk, contents, directoryTag, access } = deps;
  const incoming = new IncomingFiles(dataDirectory, disk);
  const folder = blockFolder(dataDirectory, disk);
  const hasBlocks = contents.hasNames;
  if (!access) {
    if (!hasBlocks) return { incoming, folder };
    throw new DataDirectoryError(
      'unusable',
      `${dataDirectory} has blocks in a bucket: give the --blocks that the service had`,
    );
  }
  // Few services need what this loads.
  const { blockBucket } = await import('./bucket/block-bucket.ts');
  return { incoming, folder, outer: blockBucket({ access, directoryTag, hasBlocks, incoming }) };
}
