import type { ByteRange } from '../util/ranges.ts';
import type { DownloadArg, FileMetadata } from '../wire/files.ts';
import type { Opened } from './caller.ts';
import type { Client } from './context.ts';
import { ApiError } from './errors.ts';
import type { HttpHead } from './http.ts';
import { LostConnection } from './lost-connection.ts';
import type { Download, FileEntry, Remote } from './remote.ts';
import { downloadRequest, parseHeaderJson } from './request.ts';

const ROUTE = 'files/download';

/**
 * The call that reads content. It names the revision, so that the parts of one file fit together whatever happens to the
 * file meanwhile.
 */
export function downloadsOf({ caller }: Client): Pick<Remote, 'download'> {
  return {
    download: (file, range, signal, options) => {
      const arg: DownloadArg = { path: `rev:${file.rev}` };
      return caller.open({
        request: downloadRequest(ROUTE, arg, range),
        lane: options?.ahead ? 'prefetch' : 'read',
        signal,
        read: (head, opened): Download => {
          const wanted = range ?? { start: 0, end: file.sizeBytes };
          checkHead(head, file, range);
          const sizeBytes = Math.min(wanted.end, file.sizeBytes) - wanted.start;
          return { file, read: wholeBody(opened, sizeBytes) };
        },
      });
    },
  };
}

/** Throws when the answer is not for the requested revision or range. */
function checkHead(head: HttpHead, file: FileEntry, range: ByteRange | undefined): void {
  // Not verified as a type: the fields are compared at once.
  const result = parseHeaderJson(head.header('dropbox-api-result') ?? '') as FileMetadata;
  if (result.rev !== file.rev || result.size !== file.sizeBytes)
    throw new TypeError('the answer has another revision than requested');
  if (!range) {
    if (head.status !== 200) throw new TypeError('a partial answer to a request for the whole file');
    return;
  }
  const start = /^bytes (\d+)-/.exec(head.header('content-range') ?? '')?.[1];
  if (head.status !== 206 || Number(start) !== range.start)
    throw new TypeError('another range than requested');
}

/** Returns a function that reads the bytes of an answer, and throws unless they are `sizeBytes` long. */
function wholeBody({ stream, signal, release }: Opened, sizeBytes: number): Download['read'] {
  stream.onClose(release);
  let receivedBytes = 0;
  return async (into) => {
    try {
      const bytes = await stream.read(into);
      receivedBytes += bytes;
      if (receivedBytes > sizeBytes) throw damaged(`more than the requested ${sizeBytes} bytes arrived`);
      if (bytes === 0 && receivedBytes < sizeBytes) throw cutAt(receivedBytes, sizeBytes);
      return bytes;
    } catch (cause) {
      stream.cancel();
      if (signal.aborted) throw signal.reason;
      throw cause instanceof LostConnection ? cutAt(receivedBytes, sizeBytes, cause) : cause;
    }
  };
}

function cutAt(receivedBytes: number, sizeBytes: number, cause?: LostConnection): ApiError {
  const message = `${ROUTE}: the connection was lost after ${receivedBytes} of ${sizeBytes} bytes`;
  return new ApiError('offline', message, { cut: { receivedBytes }, ...(cause && { cause: cause.cause }) });
}

function damaged(what: string): ApiError {
  return new ApiError('unavailable', `${ROUTE}: ${what}`);
}
