import { createHash } from 'node:crypto';
import { FileError } from '../../drive/errors.ts';
import type { FileEntry, FolderEntry } from '../../drive/files.ts';
import { mediaTypeOf } from '../../util/media-types.ts';
import { type ByteRange, parseRange } from '../../util/ranges.ts';
import { DRIVE_PAGE_POLICY, drivePage } from '../answers/folder-page.ts';
import { sendFile } from '../answers/send-file.ts';
import { checkIfHeader, conditionsFailed } from '../conditions/preconditions.ts';
import {
  evaluateConditions,
  ifRangeMatches,
  type Validators,
  validatorsOf,
} from '../conditions/validators.ts';
import type { Context } from '../context.ts';
import { DavError } from '../errors.ts';
import { httpDate } from '../http-date.ts';
import { hrefOf } from '../resource-url.ts';

/** Media types in which a browser may run scripts. They are sandboxed: a file must not act as the user who opens it. */
const SCRIPTABLE = /^(text\/html|text\/javascript|application\/(xhtml\+xml|xml)|image\/svg\+xml)$/;

/** GET and HEAD: the content of a file, or a page that lists a folder, for browsers and document scanners. */
export async function get(context: Context): Promise<void> {
  const { drive, path, signal } = context;
  const entry = await drive.files.stat(path, signal);
  await checkIfHeader(context, entry);
  if (!entry) {
    const result = evaluateConditions(context.request.headers, undefined, { isRead: true });
    if (result === 'failed') throw conditionsFailed();
    throw new FileError('not-found', `${path} does not exist`);
  }
  if (entry.kind === 'file') await getFile(context, entry);
  else await getFolder(context, entry);
}

async function getFile(context: Context, file: FileEntry): Promise<void> {
  const { exchange, request } = context;
  const validators = validatorsOf(file);
  const tags = {
    ...(validators.entityTag !== undefined && { ETag: validators.entityTag }),
    'Last-Modified': httpDate(file.modifiedMs),
    // Otherwise phones reuse a cached copy for as long as `Last-Modified` suggests. A 304 needs it too (RFC 9110 §15.4.5).
    'Cache-Control': 'no-cache',
  };
  if (isNotModified(context, validators))
    return exchange.answer({ status: 304, headers: tags, body: undefined });
  const type = mediaTypeOf(file.name) ?? 'application/octet-stream';
  const headers = {
    ...tags,
    'Content-Type': type,
    'Accept-Ranges': 'bytes',
    'X-Content-Type-Options': 'nosniff',
    ...(SCRIPTABLE.test(type) && { 'Content-Security-Policy': 'sandbox' }),
  };
  if (request.method === 'HEAD') {
    exchange.response.writeHead(200, { ...headers, 'Content-Length': file.sizeBytes }).end();
    return;
  }
  await sendFile(context, file, rangesOf(context, file, validators), headers);
}

/** Whether the client has the current representation. Throws `DavError` 412 when a condition is not met. */
function isNotModified({ request }: Context, validators: Validators): boolean {
  const result = evaluateConditions(request.headers, validators, { isRead: true });
  if (result === 'failed') throw conditionsFailed();
  return result === 'not-modified';
}

/** Returns the requested ranges; `undefined` for the whole file. Throws `DavError` 416. */
function rangesOf(
  { request }: Context,
  file: FileEntry,
  validators: Validators,
): readonly ByteRange[] | undefined {
  const { headers } = request;
  const ifRange = headers['if-range'];
  if (headers.range === undefined || !ifRangeMatches(ifRange && String(ifRange), validators))
    return undefined;
  const ranges = parseRange(headers.range, file.sizeBytes);
  if (ranges !== 'unsatisfiable') return ranges;
  throw new DavError(416, `the requested range is outside the file, which has ${file.sizeBytes} bytes`, {
    headers: { 'Content-Range': `bytes */${file.sizeBytes}`, 'Accept-Ranges': 'bytes' },
  });
}

async function getFolder(context: Context, folder: FolderEntry): Promise<void> {
  const { exchange, drive, path, signal } = context;
  const { children } = await drive.files.list(path, signal);
  const page = Buffer.from(
    drivePage({
      path: folder.path,
      items: children.map((child) => ({
        kind: child.kind,
        name: child.name,
        url: hrefOf(child.path, child.kind === 'folder'),
        ...(child.kind === 'file' && { sizeBytes: child.sizeBytes }),
        ...(child.modifiedMs !== undefined && { modifiedMs: child.modifiedMs }),
      })),
    }),
  );
  const entityTag = `W/"${createHash('sha256').update(page).digest('hex').slice(0, 32)}"`;
  const headers = { ETag: entityTag, 'Cache-Control': 'no-cache' };
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
