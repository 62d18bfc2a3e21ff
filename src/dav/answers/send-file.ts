import type { OutgoingHttpHeaders } from 'node:http';
import { FileError } from '../../drive/errors.ts';
import type { FileEntry } from '../../drive/files.ts';
import type { ByteRange } from '../../util/ranges.ts';
import type { Context } from '../context.ts';

/** Answers with the whole `file`, one range of it, or several as `multipart/byteranges` (RFC 9110 §14). */
export async function sendFile(
  context: Context,
  file: FileEntry,
  ranges: readonly ByteRange[] | undefined,
  headers: OutgoingHttpHeaders & { readonly 'Content-Type': string },
): Promise<void> {
  const { response } = context.exchange;
  const [range, ...more] = ranges ?? [];
  if (range && more.length > 0) return sendParts(context, file, [range, ...more], headers);
  const length = range ? range.end - range.start : file.sizeBytes;
  const rangeHeader = range && { 'Content-Range': contentRange(range, file) };
  await sendBytes(context, file, range, () =>
    response.writeHead(range ? 206 : 200, { ...headers, ...rangeHeader, 'Content-Length': length }),
  );
  response.end();
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
  const { response } = context.exchange;
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
 * Streams the bytes at the client's pace, and stops when the client goes away. Calls `begin` with the first bytes: until
 * then a failure can still be answered with its own status.
 */
async function sendBytes(
  { drive, exchange, signal }: Context,
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
    await exchange.write(piece);
    signal.throwIfAborted();
  }
  // The Content-Length is out: the error closes the connection, so that the client sees an incomplete answer.
  if (sent !== length)
    throw new FileError(
      'broken',
      `the content of ${file.path} is not ${file.sizeBytes} bytes long as announced`,
    );
}
