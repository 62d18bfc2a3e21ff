import { once } from 'node:events';
import type { OutgoingHttpHeaders } from 'node:http';
import { FileError } from '../../drive/errors.ts';
import type { FileEntry } from '../../drive/files.ts';
import type { ByteRange } from '../../util/ranges.ts';
import type { Context } from '../method.ts';

/** Bytes that may wait for the client while the next ones are fetched. */
const AHEAD_BYTES = 512 * 1024;

/** Answers with all of `file`, with one run of its bytes, or with several as `multipart/byteranges`. */
export async function sendFile(
  context: Context,
  file: FileEntry,
  ranges: readonly ByteRange[] | undefined,
  headers: OutgoingHttpHeaders & { readonly 'Content-Type': string },
): Promise<void> {
  const [range, ...more] = ranges ?? [];
  if (range && more.length > 0) return sendParts(context, file, [range, ...more], headers);
  const length = range ? range.end - range.start : file.sizeBytes;
  const rangeHeader = range && { 'Content-Range': contentRange(range, file) };
  await sendBytes(context, file, range, () =>
    context.response.writeHead(range ? 206 : 200, { ...headers, ...rangeHeader, 'Content-Length': length }),
  );
  context.response.end();
}

function contentRange({ start, end }: ByteRange, { sizeBytes }: FileEntry): string {
  return `bytes ${start}-${end - 1}/${sizeBytes}`;
}

async function sendParts(
  context: Context,
  file: FileEntry,
  ranges: readonly ByteRange[],
  headers: OutgoingHttpHeaders & { readonly 'Content-Type': string },
): Promise<void> {
  const { response } = context;
  const boundary = context.randomUuid();
  const heads = ranges.map((range) =>
    Buffer.from(
      `\r\n--${boundary}\r\nContent-Type: ${headers['Content-Type']}\r\n` +
        `Content-Range: ${contentRange(range, file)}\r\n\r\n`,
    ),
  );
  const tail = Buffer.from(`\r\n--${boundary}--\r\n`);
  const bytes = ranges.reduce((sum, { start, end }) => sum + end - start, 0);
  const begin = () =>
    response.writeHead(206, {
      ...headers,
      'Content-Type': `multipart/byteranges; boundary=${boundary}`,
      'Content-Length': heads.reduce((sum, head) => sum + head.length, bytes + tail.length),
    });
  for (const [index, range] of ranges.entries()) {
    await sendBytes(context, file, range, () => {
      if (index === 0) begin();
      response.write(heads[index]);
    });
  }
  response.end(tail);
}

/**
 * No faster than the client reads; ends the download when the client has gone. `begin` is called once the
 * first bytes are there: until then a failure can still be told by its status.
 */
async function sendBytes(
  { drive, response, signal }: Context,
  file: FileEntry,
  range: ByteRange | undefined,
  begin: () => void,
): Promise<void> {
  const length = range ? range.end - range.start : file.sizeBytes;
  if (length === 0) return begin();
  let sent = 0;
  for await (const piece of drive.files.read(file, range, signal)) {
    if (piece.length === 0) continue;
    if (sent === 0) begin();
    sent += piece.length;
    if (sent > length) break;
    if (!response.write(piece) && response.writableLength >= AHEAD_BYTES)
      await once(response, 'drain', { signal });
  }
  // What was announced cannot be taken back: the connection breaks off, and nobody takes it for the whole.
  if (sent !== length) throw new FileError('broken', `${file.path} is not as long as it is said to be`);
}
