import { momentNow } from '../../util/clock.ts';
import { contentHashOf } from '../../util/content-hash.ts';
import type { UploadArg } from '../../wire/files.ts';
import type { Client } from '../context.ts';
import type { Remote } from '../remote.ts';
import { uploadRequest } from '../request.ts';
import { commitBy, commitInfo } from './commit.ts';

/** Writes content in one call. */
export function uploadsOf(client: Client): Pick<Remote, 'upload' | 'uploadsAtOnce'> {
  return {
    uploadsAtOnce: () => client.caller.uploadsAtOnce,

    async upload(path, body, options, signal) {
      const contentHash = contentHashOf(body);
      const arg: UploadArg = { ...commitInfo(client, path, options), content_hash: contentHash };
      const commit = { path, options, sizeBytes: body.length, contentHash, started: momentNow(client.clock) };
      const request = uploadRequest('files/upload', arg, body);
      return commitBy(client, commit, { request, lane: 'upload', signal });
    },
  };
}
