import { failure, nested, refused, type WireFailure } from '../api/failures.ts';
import { fileMetadata } from '../api/metadata.ts';
import { absolutePath, destination } from '../api/paths.ts';
import { CREATE, failureOf, type RefusalTable } from '../api/refusals.ts';
import { type ApiCall, type ApiCaller, type Route, rpc } from '../api/route.ts';
import { required, string } from '../api/schema.ts';
import type { JobResult } from '../jobs/jobs.ts';
import { DownloadFailed, webUrl } from '../save-url/web-files.ts';
import { type Commit, StorageError } from '../storage/storage.ts';
import { checkRoute, launch } from './jobs.ts';

/** Maximum size of a file, in bytes. The real service's limit is not published. */
const FILE_MAX_BYTES = 10 * 1024 ** 3;

/** A slow host must not hold up an account's batches, nor alone its other downloads. */
const DOWNLOADS = { name: 'downloads', atOnce: 4 };

const SAVE_URL = 'files/save_url';

/** SaveUrlError, which has no member for a file that is too large: there is no space for one. */
const REFUSALS: RefusalTable = { ...CREATE, body: () => nested('path', failure('insufficient_space')) };

/** Always by a job. What is wrong with the destination's name or place shows when the bytes are there. */
const saveUrl = rpc({
  name: SAVE_URL,
  scope: 'files.content.write',
  argument: { path: required(absolutePath), url: required(string()) },
  refusals: REFUSALS,
  handle: (call) => {
    const { argument, caller } = call;
    const path = destination(argument.path, caller.account.namespace);
    const url = webUrl(argument.url);
    if (!url) throw refused(failure('invalid_url'));
    return launch(call, SAVE_URL, (closing) => saved(call, url, path, closing), DOWNLOADS);
  },
});

export const SAVE_URL_ROUTES: readonly Route[] = [
  saveUrl,
  checkRoute(`${SAVE_URL}/check_job_status`, SAVE_URL),
];

async function saved(
  call: ApiCall<ApiCaller>,
  url: URL,
  path: string,
  closing: AbortSignal,
): Promise<JobResult> {
  const { caller, storage, webFiles } = call;
  const commit: Commit = { path, mode: { tag: 'add' }, autorename: true, strictConflict: true };
  try {
    return await webFiles.fetch(url, closing, async ({ sizeBytes = 0, bytes, until }) => {
      const maxBytes = await roomOf(call);
      if (sizeBytes > maxBytes) throw new StorageError({ kind: 'body', tag: 'payload_too_large' });
      const body = { bytes, maxBytes };
      const options = { refusedBytes: 'dropped', until } as const;
      const file = await storage.upload(caller.account.namespace, commit, body, options);
      return { '.tag': 'complete', ...fileMetadata(file) };
    });
  } catch (error) {
    const told = failureFor(error);
    if (!told) throw error;
    return { '.tag': 'failed', failed: told.value };
  }
}

function failureFor(error: unknown): WireFailure | undefined {
  if (error instanceof DownloadFailed) return failure('download_failed');
  return error instanceof StorageError ? failureOf(error, REFUSALS) : undefined;
}

/** How many bytes the file may have: a host that sends for ever must not fill the disk before the quota is looked at. */
async function roomOf({ caller, storage, freeBytes }: ApiCall<ApiCaller>): Promise<number> {
  const { limitBytes, usedBytes } = storage.usage(caller.account.namespace);
  return Math.max(0, Math.min(FILE_MAX_BYTES, limitBytes - usedBytes, await freeBytes()));
}
