import { readAll } from '../util/byte-source.ts';
import type { ThumbnailV2Arg } from '../wire/thumbnails.ts';
import type { Client } from './context.ts';
import { ApiError } from './errors.ts';
import { LostConnection } from './lost-connection.ts';
import type { Remote } from './remote.ts';
import { downloadRequest, parseHeaderJson } from './request.ts';

const ROUTE = 'files/get_thumbnail_v2';

/** Maximum size of a thumbnail, in bytes. Those of 256 pixels have some 20 kB. */
const THUMBNAIL_BYTES_MAX = 1024 * 1024;

/** The call for small images, `get_thumbnail_v2`. It names the revision, as a download does. */
export function thumbnailsOf({ caller }: Client): Pick<Remote, 'thumbnail'> {
  return {
    async thumbnail(file, signal) {
      const arg: ThumbnailV2Arg = {
        resource: { '.tag': 'path', path: `rev:${file.rev}` },
        format: { '.tag': 'webp' },
        size: { '.tag': 'w256h256' },
        mode: { '.tag': 'bestfit' },
      };
      const stream = await caller.open({
        request: downloadRequest(ROUTE, arg, undefined),
        lane: 'read',
        signal,
        read: (head, opened) => {
          // Throws for the page of a proxy, which has no result.
          parseHeaderJson(head.header('dropbox-api-result') ?? '');
          opened.stream.onClose(opened.release);
          return opened.stream;
        },
      });
      try {
        const image = await readAll(stream, THUMBNAIL_BYTES_MAX);
        if (image.length <= THUMBNAIL_BYTES_MAX) return image;
        throw new ApiError('no-thumbnail', `${ROUTE}: the image is larger than ${THUMBNAIL_BYTES_MAX} bytes`);
      } catch (cause) {
        if (signal?.aborted) throw signal.reason;
        if (!(cause instanceof LostConnection)) throw cause;
        throw new ApiError('offline', `${ROUTE}: the connection was lost`, { cause: cause.cause });
      } finally {
        stream.cancel();
      }
    },
  };
}
