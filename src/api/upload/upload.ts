import { contentHashOf } from '../../util/content-hash.ts';
import type { Client } from '../context.ts';
import type { Remote } from '../remote.ts';
import { parsed, uploadRequest } from '../request.ts';
import type { FileMetadata, UploadArg } from '../wire.ts';
import { checkContent, commitInfo, resolveCommit } from './commit.ts';

const ROUTE = 'files/upload';

/** Writes content in one call. */
export function uploadsOf(client: Client): Pick<Remote, 'upload' | 'uploadsAtOnce'> {
  const { caller, root } = client;
  return {
    uploadsAtOnce: () => caller.uploadsAtOnce,

    async upload(path, body, options, signal) {
      const contentHash = contentHashOf(body);
      const arg: UploadArg = { ...commitInfo(client, path, options), content_hash: contentHash };
      const commit = { path, options, sizeBytes: body.length, contentHash, startedMs: client.clock.now() };
      const file = await caller.call({
        request: uploadRequest(ROUTE, arg, body),
        lane: 'upload',
        signal,
        read: ({ text }) => root.file(parsed<FileMetadata>(text)),
        async resolve(situation) {
          const done = await resolveCommit(client, commit, situation, signal);
          return done && { result: done };
        },
      });
      return checkContent(file, commit, ROUTE);
    },
  };
}
