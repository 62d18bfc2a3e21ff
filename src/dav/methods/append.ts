import { requireDownloadable } from '../../drive/errors.ts';
import type { FileEntry } from '../../drive/files.ts';
import type { Context } from '../context.ts';
import { DavError } from '../errors.ts';
import type { Exchange } from '../exchange.ts';

/** The content that a request gives a file. */
export interface NewContent {
  readonly body: AsyncIterable<Uint8Array>;
  /** `undefined`: unknown. A body of another length is not stored. */
  readonly sizeBytes: number | undefined;
  /** What it goes on from, and the only thing that it may replace: a file's content, or the absence of a file. */
  readonly goesOnFrom?: FileEntry | 'nothing';
}

/** The place in a file that the body of a request is for. */
export interface BodyRange {
  /** Offset of the first byte; `undefined`: the end of the file, wherever that is. */
  readonly firstByte: number | undefined;
  /** Size of the file with these bytes at its end; `undefined` without an announced length. */
  readonly sizeBytes: number | undefined;
  /** The body is the whole file. */
  readonly isWhole: boolean;
}

/**
 * Returns the place that `Content-Range` gives the body of a PUT (RFC 9110 §14.5). Throws `DavError` 400 for a range that does not end the file: readers would take the beginning of a file for all of it.
 */
export function contentRangeOf({ request }: Pick<Exchange, 'request'>): BodyRange {
  const header = String(request.headers['content-range']);
  const [, first = '', last = '', total = ''] =
    /^\s*bytes\s+(\d{1,15})-(\d{1,15})\/(\d{1,15}|\*)\s*$/i.exec(header) ?? [];
  const [firstByte, sizeBytes] = [Number(first), Number(last) + 1];
  const isEnd = total === '*' || Number(total) === sizeBytes;
  if (first === '' || firstByte >= sizeBytes || !isEnd)
    throw new DavError(
      400,
      'Content-Range must be "bytes SIZE-LAST/TOTAL" and name the end of the file: PUT replaces a whole file, or appends to ' +
        'one of SIZE bytes. Large files can be sent in pieces by the address /remote.php/dav/files/USER/',
    );
  return { firstByte, sizeBytes, isWhole: firstByte === 0 && total !== '*' };
}

/**
 * Returns the place that `X-Update-Range` gives the body of a PATCH (SabreDAV's partial update). Throws `DavError` 400 unless
 * it can be the end of a file.
 */
export function updateRangeOf({ request, announcedBytes }: Exchange): BodyRange {
  const header = String(request.headers['x-update-range'] ?? '').trim();
  const atEnd = { firstByte: undefined, sizeBytes: undefined, isWhole: false };
  if (/^append$/i.test(header)) return atEnd;
  const [, first = '', last = ''] = /^bytes=(\d{1,15})-(\d{0,15})$/i.exec(header) ?? [];
  const firstByte = Number(first);
  const endBytes = last === '' ? undefined : Number(last) + 1;
  const announcedEnd = announcedBytes === undefined ? undefined : firstByte + announcedBytes;
  if (first === '' || (endBytes !== undefined && announcedEnd !== undefined && endBytes !== announcedEnd))
    throw new DavError(
      400,
      'X-Update-Range must be "append", or "bytes=SIZE-" with the current size of the file: davgate appends to files, and ' +
        'replaces no bytes in their middle',
    );
  return { firstByte, sizeBytes: endBytes ?? announcedEnd, isWhole: false };
}

/**
 * Returns the content of `entry` with `body` at its end. Throws `DavError` 416 with the current size when the body begins
 * elsewhere. The service appends to no file, so its old content is read and stored again.
 */
export function appended(
  { drive, path, exchange }: Context,
  entry: FileEntry | undefined,
  { firstByte, sizeBytes, isWhole }: BodyRange,
  body: AsyncIterable<Uint8Array>,
): NewContent {
  if (isWhole) return { body, sizeBytes };
  if (entry) requireDownloadable(entry);
  const oldBytes = entry?.sizeBytes ?? 0;
  if (firstByte !== undefined && firstByte !== oldBytes)
    throw new DavError(
      416,
      `${path} has ${oldBytes} bytes, and davgate only appends to files: send what follows byte ${oldBytes}, or PUT the ` +
        'whole file',
      { headers: { 'Content-Range': `bytes */${oldBytes}` } },
    );
  const { announcedBytes } = exchange;
  const newBytes = sizeBytes ?? (announcedBytes === undefined ? undefined : oldBytes + announcedBytes);
  if (!entry) return { body, sizeBytes: newBytes, goesOnFrom: 'nothing' };
  const old = oldBytes > 0 ? drive.files.read(entry, undefined, exchange.signal) : [];
  return { body: joined(old, body), sizeBytes: newBytes, goesOnFrom: entry };
}

async function* joined(
  old: AsyncIterable<Uint8Array> | readonly Uint8Array[],
  body: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  // The buffer of a piece that was read is used again for the next one.
  for await (const piece of old) yield Buffer.from(piece);
  yield* body;
}
