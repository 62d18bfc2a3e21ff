import { failure, nested, refused, type WireFailure } from '../api/failures.ts';
import { fileMetadata } from '../api/metadata.ts';
import { absolutePath, destination } from '../api/paths.ts';
import { CREATE, failureOf, type RefusalTable } from '../api/refusals.ts';
import { type ApiCall, type ApiCaller, type Route, rpc } from '../api/route.ts';
import { required, string } from '../api/schema.ts';
import type { JobResult } from '../jobs/job-rows.ts';
import { DownloadFailed, webUrl } from '../save-url/web-files.ts';
import { type Commit, StorageError } from '../storage/storage.ts';
import { checkRoute, launch } from './jobs.ts';

/** Maximum size of a file, in bytes. The real service's limit is not published. */
const FILE_BYTES_MAX = 10 * 1024 ** 3;

/** The line of downloads, separate from batches, with several at a time: a slow host must not delay them. */
const DOWNLOADS = { name: 'downloads', atOnce: 4 };

const SAVE_URL = 'files/save_url';

/** SaveUrlError. It has no member for a file that is too large, so that is reported as insufficient space. */
const REFUSALS: RefusalTable = { ...CREATE, body: () => nested('path', failure('insufficient_space')) };

/** Always a job. A destination that is refused shows when the bytes have arrived. */
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
      const bytesMax = await roomOf(call);
      if (sizeBytes > bytesMax) throw new StorageError({ kind: 'body', tag: 'payload_too_large' });
      const body = { bytes, bytesMax };
      const options = { refusedBytes: 'dropped', until } as const;
      const file = await storage.upload(caller.account.namespace, commit, body, options);
      return { '.tag': 'complete', ...fileMetadata(file) };
    });
  } catch (error) {
    const refusal = failureFor(error);
    if (!refusal) throw error;
    return { '.tag': 'failed', failed: refusal.value };
  }
}

function failureFor(error: unknown): WireFailure | undefined {
  if (error instanceof DownloadFailed) return failure('download_failed');
  return error instanceof StorageError ? failureOf(error, REFUSALS) : undefined;
}

/**
 * Returns the maximum size of the file, in bytes: a host that sends without end must not fill the disk before the quota
 * is checked.
 */
async function roomOf({ caller, storage, freeBytes }: ApiCall<ApiCaller>): Promise<number> {
  const { limitBytes, usedBytes } = await storage.usage(caller.account.namespace);
  return Math.max(0, Math.min(FILE_BYTES_MAX, limitBytes - usedBytes, await freeBytes()));
}
