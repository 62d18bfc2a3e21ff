import { exceptRoot } from '../addresses.ts';
import { fileContent } from '../content/file-content.ts';
import { folderZip } from '../content/folder-zip.ts';
import { readableFile } from '../content/readable-file.ts';
import { ZIP_TYPE } from '../content/zip.ts';
import { failure, refused } from '../failures.ts';
import { fileMetadata, folderMetadata } from '../metadata.ts';
import { readPath, rev } from '../path-schemas.ts';
import { LOOKUP } from '../refusals.ts';
import { download, type Route } from '../route.ts';
import { optional, required } from '../schema.ts';
import { StorageError } from '../storage/storage.ts';

/** The bytes of the revision that was current, or named, when the call came: a later write does not mix in. */
const downloadFile = download({
  name: 'files/download',
  scope: 'files.content.read',
  argument: { path: required(readPath), rev: optional(rev) },
  refusals: LOOKUP,
  handle: (call) => {
    const { argument, caller, storage } = call;
    const { namespace } = caller.account;
    // `rev` is the old way to write `path: "rev:…"`, and wins over the path.
    const address = argument.rev ? `rev:${argument.rev}` : exceptRoot(argument.path, namespace);
    const file = readableFile(storage.stat(namespace, address, false));
    return fileContent(call, file, fileMetadata(file));
  },
});

/** The folder with all below it. */
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
