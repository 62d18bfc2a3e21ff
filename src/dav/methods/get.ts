import { createHash } from 'node:crypto';
import type { OutgoingHttpHeaders } from 'node:http';
import { FileError, requireDownloadable } from '../../drive/errors.ts';
import type { FileEntry, FolderEntry } from '../../drive/files.ts';
import type { BasePath } from '../../util/base-path.ts';
import { mediaTypeOf } from '../../util/media-types.ts';
import { parentOf } from '../../util/path.ts';
import { type ByteRange, parseRange } from '../../util/ranges.ts';
import { DRIVE_PAGE_POLICY, drivePage } from '../answers/folder-page.ts';
import {
  checkIfHeader,
  conditionsFailed,
  evaluateConditions,
  httpDate,
  ifRangeMatches,
  type Validators,
  validatorsOf,
} from '../conditions/preconditions.ts';
import { type Context, entryHere, type Method } from '../context.ts';
import { DavError } from '../errors.ts';
import { hrefOf } from '../resource-url.ts';

/**
 * Media types that browsers only show or save. Files of all others are sandboxed: a file must not act as the user who opens
 * it. Browsers show no PDF in a sandbox, and their viewers run its scripts apart from this origin.
 */
const PASSIVE =
  /^(image\/(?!svg)|audio\/|video\/|font\/|text\/(plain|markdown|csv)\b|application\/(octet-stream|pdf|zip)$)/;

/** Returns the page that a browser gets in place of a folder, for a drive below `prefix`: the web application. */
export type FolderPage = (prefix: BasePath) => {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
};

/** GET and HEAD: the content of a file, or a page that lists a folder, for browsers and document scanners. */
export function createGet(folderPage: FolderPage | undefined): Method {
  return (context) => get(context, folderPage);
}

async function get(context: Context, folderPage: FolderPage | undefined): Promise<void> {
  const entry = await entryHere(context);
  if (context.request.headers['if'] !== undefined) await checkIfHeader(context, entry);
  if (!entry) {
    const result = evaluateConditions(context.request.headers, undefined, { isRead: true });
    if (result === 'failed') throw conditionsFailed();
    throw new FileError('not-found', `${context.path} does not exist`);
  }
  if (entry.kind === 'file') await getFile(context, entry);
  else if (folderPage && wantsPage(context)) await sendPage(context, folderPage);
  else await getFolder(context, entry, folderPage !== undefined);
}

async function getFile(context: Context, file: FileEntry): Promise<void> {
  const { exchange, request } = context;
  requireDownloadable(file);
  const { validators, tags, headers } = fieldsOf(file);
  if (isNotModified(context, validators))
    return exchange.answer({ status: 304, headers: tags, body: undefined });
  if (request.method === 'HEAD') {
    exchange.writeHead(200, headers, file.sizeBytes);
    exchange.response.end();
    return;
  }
  const ranges = rangesOf(context, file);
  const body = ranges ? undefined : context.drive.files.inMemory(file);
  if (body) await exchange.answer({ status: 200, headers, body });
  else await sendFile(context, file, ranges, headers);
}

/** What answers say about a file. */
interface FileFields {
  readonly validators: Validators;
  /** The header fields that a 304 needs too (RFC 9110 §15.4.5). */
  readonly tags: OutgoingHttpHeaders;
  readonly headers: OutgoingHttpHeaders & { readonly 'Content-Type': string };
}

/** Kept as long as the drive keeps the entry. An entry never changes. */
const knownFields = new WeakMap<FileEntry, FileFields>();

function fieldsOf(file: FileEntry): FileFields {
  const known = knownFields.get(file);
  if (known) return known;
  const validators = validatorsOf(file);
  const tags = {
    ETag: validators.entityTag,
    'Last-Modified': httpDate(file.modifiedMs),
    // Otherwise phones reuse a cached copy for as long as `Last-Modified` suggests.
    'Cache-Control': 'no-cache',
  };
  const type = mediaTypeOf(file.name) ?? 'application/octet-stream';
  const headers = {
    ...tags,
    'Content-Type': type,
    'Accept-Ranges': 'bytes',
    'X-Content-Type-Options': 'nosniff',
    ...(!PASSIVE.test(type) && { 'Content-Security-Policy': 'sandbox' }),
  };
  const fields = { validators, tags, headers };
  knownFields.set(file, fields);
  return fields;
}

/** Whether the client has the current representation. Throws `DavError` 412 when a condition is not met. */
function isNotModified({ request }: Context, validators: Validators): boolean {
  const result = evaluateConditions(request.headers, validators, { isRead: true });
  if (result === 'failed') throw conditionsFailed();
  return result === 'not-modified';
}

/** Returns the requested ranges; `undefined` for the whole file. Throws `DavError` 416. */
function rangesOf({ request, clock }: Context, file: FileEntry): readonly ByteRange[] | undefined {
  const { headers } = request;
  const ifRange = headers['if-range'];
  if (headers.range === undefined || !ifRangeMatches(ifRange && String(ifRange), file, clock.now()))
    return undefined;
  const ranges = parseRange(headers.range, file.sizeBytes);
  if (ranges !== 'unsatisfiable') return ranges;
  throw new DavError(416, `the requested range is outside the file, which has ${file.sizeBytes} bytes`, {
    headers: { 'Content-Range': `bytes */${file.sizeBytes}`, 'Accept-Ranges': 'bytes' },
  });
}

/** Answers with the whole `file`, one range of it, or several as `multipart/byteranges` (RFC 9110 §14). */
async function sendFile(
  context: Context,
  file: FileEntry,
  ranges: readonly ByteRange[] | undefined,
  headers: OutgoingHttpHeaders & { readonly 'Content-Type': string },
): Promise<void> {
  const { exchange } = context;
  const [range, ...more] = ranges ?? [];
  if (range && more.length > 0) return sendParts(context, file, [range, ...more], headers);
  const length = range ? range.end - range.start : file.sizeBytes;
  const rangeHeader = range && { 'Content-Range': contentRange(range, file) };
  await sendBytes(context, file, range, () =>
    exchange.writeHead(range ? 206 : 200, { ...headers, ...rangeHeader }, length),
  );
  exchange.response.end();
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
  const { exchange } = context;
  const boundary = context.randomUuid();
  const heads = ranges.map((range) =>
    Buffer.from(
      `\r\n--${boundary}\r\nContent-Type: ${headers['Content-Type']}\r\n` +
        `Content-Range: ${contentRange(range, file)}\r\n\r\n`,
    ),
  );
  const tail = Buffer.from(`\r\n--${boundary}--\r\n`);
  const bytes = ranges.reduce((sum, { start, end }) => sum + end - start, 0);
  const type = `multipart/byteranges; boundary=${boundary}`;
  const sizeBytes = heads.reduce((sum, head) => sum + head.length, bytes + tail.length);
  const begin = () => exchange.writeHead(206, { ...headers, 'Content-Type': type }, sizeBytes);
  for (const [index, range] of ranges.entries()) {
    await sendBytes(context, file, range, () => {
      if (index === 0) begin();
      exchange.response.write(heads[index] ?? '');
    });
  }
  exchange.response.end(tail);
}

/**
 * Streams the bytes at the client's pace, and stops when the client goes away. Calls `begin` with the first bytes: until
 * then a failure can still be answered with its own status.
 */
async function sendBytes(
  context: Context,
  file: FileEntry,
  range: ByteRange | undefined,
  begin: () => void,
): Promise<void> {
  const { drive, exchange, checksums } = context;
  const length = range ? range.end - range.start : file.sizeBytes;
  if (length === 0) return begin();
  const { signal } = exchange;
  let sent = 0;
  const bytes = drive.files.read(file, range, signal);
  for await (const piece of range ? bytes : checksums.downloaded(context, file, bytes)) {
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

async function getFolder(context: Context, folder: FolderEntry, varies: boolean): Promise<void> {
  const { exchange, drive, path } = context;
  const { children } = await drive.files.list(path, exchange.signal);
  const page = Buffer.from(
    drivePage({
      path: folder.path,
      parentUrl: hrefOf(exchange, parentOf(folder.path), true),
      items: children.map((child) => ({
        kind: child.kind,
        name: child.name,
        url: hrefOf(exchange, child.path, child.kind === 'folder'),
        ...(child.kind === 'file' && { sizeBytes: child.sizeBytes }),
        ...(child.modifiedMs !== undefined && { modifiedMs: child.modifiedMs }),
      })),
    }),
  );
  const entityTag = `W/"${createHash('sha256').update(page).digest('hex').slice(0, 32)}"`;
  const headers = { ETag: entityTag, 'Cache-Control': 'no-cache', ...(varies && { Vary: 'Accept' }) };
  if (isNotModified(context, { entityTag }))
    return exchange.answer({ status: 304, headers, body: undefined });
  await exchange.answer({
    status: 200,
    headers: {
      ...headers,
      'Content-Type': 'text/html; charset=utf-8',
      'Content-Security-Policy': DRIVE_PAGE_POLICY,
      'X-Content-Type-Options': 'nosniff',
      'Referrer-Policy': 'no-referrer',
    },
    body: page,
  });
}

/** Whether a browser asks, and not for the plain list, which needs no script. */
function wantsPage({ request }: Context): boolean {
  return /\btext\/html\b/.test(request.headers.accept ?? '') && !request.url?.endsWith('?plain');
}

async function sendPage(context: Context, folderPage: FolderPage): Promise<void> {
  const { headers, body } = folderPage(context.exchange.prefix);
  const entityTag = headers['ETag'];
  const isKnown = entityTag !== undefined && isNotModified(context, { entityTag });
  await context.exchange.answer({
    status: isKnown ? 304 : 200,
    headers: { ...headers, Vary: 'Accept' },
    body: isKnown ? undefined : body,
  });
}
