import { ZIP_TYPE } from '../../util/zip.ts';
import { failure, refused } from '../api/failures.ts';
import { fileMetadata, folderMetadata } from '../api/metadata.ts';
import { exceptRoot, readPath, rev } from '../api/paths.ts';
import { LOOKUP } from '../api/refusals.ts';
import { download, type Route } from '../api/route.ts';
import { optional, required } from '../api/schema.ts';
import { fileContent, readableFile } from '../content/file-content.ts';
import { folderZip } from '../content/folder-zip.ts';
import { StorageError } from '../storage/storage.ts';

/** Downloads one revision, current or named, so that a later write does not mix in. */
const downloadFile = download({
  name: 'files/download',
  scope: 'files.content.read',
  argument: { path: required(readPath), rev: optional(rev) },
  refusals: LOOKUP,
  handle: (call) => {
    const { argument, caller, storage } = call;
    const { namespace } = caller.account;
    // `rev` is the old form of `path: "rev:…"`, and takes precedence.
    const address = argument.rev ? `rev:${argument.rev}` : exceptRoot(argument.path, namespace);
    const file = readableFile(storage.stat(namespace, address, false));
    return fileContent(call, file, fileMetadata(file));
  },
});

/** Downloads a folder with everything below it. */
const downloadZip = download({
  name: 'files/download_zip',
  scope: 'files.content.read',
  argument: { path: required(readPath) },
  refusals: LOOKUP,
  handle: ({ argument, caller, storage, clock }) => {
    const { namespace } = caller.account;
    const folder = storage.stat(namespace, exceptRoot(argument.path, namespace), false);
    if (folder.kind === 'file') throw new StorageError({ kind: 'lookup', tag: 'not_folder' });
    if (folder.kind === 'deleted') throw new StorageError({ kind: 'lookup', tag: 'not_found' });
    const zip = folderZip(storage, namespace, folder, clock.now());
    if (typeof zip === 'string') throw refused(failure(zip));
    return { ...zip, type: ZIP_TYPE, result: { metadata: folderMetadata(folder) } };
  },
});

export const DOWNLOAD_ROUTES: readonly Route[] = [downloadFile, downloadZip];
