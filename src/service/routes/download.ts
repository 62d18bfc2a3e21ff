import { ZIP_TYPE } from '../../util/zip.ts';
import { failure, refused } from '../api/failures.ts';
import { fileMetadata, folderMetadata } from '../api/metadata.ts';
import { exceptRoot, readPath, rev } from '../api/paths.ts';
import { LOOKUP } from '../api/refusals.ts';
import { download, type Route } from '../api/route.ts';
import { optional, required } from '../api/schema.ts';
import { fileContent, readableFile } from '../content/file-content.ts';
import { folderZip } from '../content/folder-zip.ts';

/** Downloads one revision, current or named, so that a later write does not mix in. */
const downloadFile = download({
  name: 'files/download',
  scope: 'files.content.read',
  argument: { path: required(readPath), rev: optional(rev) },
  refusals: LOOKUP,
  handle: async (call) => {
    const { argument, caller, storage } = call;
    const { namespace } = caller.account;
    // `rev` is the old form of `path: "rev:…"`, and takes precedence.
    const address = argument.rev ? `rev:${argument.rev}` : exceptRoot(argument.path, namespace);
    const file = readableFile(await storage.stat(namespace, address, false));
    return fileContent(call, { namespace, file }, fileMetadata(file));
  },
});

/** Downloads a folder with everything below it. */
const downloadZip = download({
  name: 'files/download_zip',
  scope: 'files.content.read',
  argument: { path: required(readPath) },
  refusals: LOOKUP,
  handle: async ({ argument, caller, storage, clock }) => {
    const { namespace } = caller.account;
    const zip = await folderZip(storage, namespace, exceptRoot(argument.path, namespace), clock.now());
    if (typeof zip === 'string') throw refused(failure(zip));
    const { folder, ...content } = zip;
    return { ...content, type: ZIP_TYPE, result: { metadata: folderMetadata(folder) } };
  },
});

export const DOWNLOAD_ROUTES: readonly Route[] = [downloadFile, downloadZip];
