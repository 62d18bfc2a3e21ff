import { createHash } from 'node:crypto';
import { FileError } from '../../drive/errors.ts';
import type { FileEntry, FolderEntry } from '../../drive/files.ts';
import { type ByteRange, parseRange } from '../../util/ranges.ts';
import { answerEmpty } from '../answers/answer.ts';
import { canRunScripts, contentTypeOf } from '../answers/content-type.ts';
import { DRIVE_PAGE_POLICY, drivePage } from '../answers/folder-page.ts';
import { sendFile } from '../answers/send-file.ts';
import { evaluate, ifRangeHolds, type Validators, validatorsOf } from '../conditions/conditions.ts';
import { checkIfHeader } from '../conditions/preconditions.ts';
import { DavError } from '../errors.ts';
import { httpDate } from '../headers.ts';
import { hrefOf } from '../href.ts';
import type { Context } from '../method.ts';

/** GET and HEAD: a file's bytes; of a folder a page, as scanners and browsers ask for one and get no redirect. */
export async function get(context: Context): Promise<void> {
  const { drive, path, signal } = context;
  const entry = await drive.files.stat(path, signal);
  await checkIfHeader(context, entry);
  if (!entry) {
    if (evaluate(context.request.headers, undefined, true) === 'failed') throw failed();
    throw new FileError('not-found', `there is nothing at ${path}`);
  }
  if (entry.kind === 'file') await getFile(context, entry);
  else await getFolder(context, entry);
}

function failed(): DavError {
  return new DavError(412, 'it has changed, or is not as the conditional headers of the request say');
}

async function getFile(context: Context, file: FileEntry): Promise<void> {
  const { request, response } = context;
  const validators = validatorsOf(file);
  const tags = {
    ...(validators.entityTag !== undefined && { ETag: validators.entityTag }),
    'Last-Modified': httpDate(file.modifiedMs),
    // Phones would otherwise show what they read yesterday, judging by `Last-Modified`. A 304 says it too (RFC 9110 §15.4.5).
    'Cache-Control': 'no-cache',
  };
  if (!isWanted(context, validators)) return answerEmpty(response, 304, tags);
  const type = contentTypeOf(file.name);
  const headers = {
    ...tags,
    'Content-Type': type,
    'Accept-Ranges': 'bytes',
    'X-Content-Type-Options': 'nosniff',
    ...(canRunScripts(type) && { 'Content-Security-Policy': 'sandbox' }),
  };
  if (request.method === 'HEAD') {
    response.writeHead(200, { ...headers, 'Content-Length': file.sizeBytes });
    response.end();
    return;
  }
  await sendFile(context, file, rangesOf(context, file, validators), headers);
}

/** Whether there is to be content in the answer. Throws `DavError` 412. */
function isWanted({ request }: Context, validators: Validators): boolean {
  const verdict = evaluate(request.headers, validators, true);
  if (verdict === 'failed') throw failed();
  return verdict === 'proceed';
}

/** `undefined` for all of it. */
function rangesOf(
  { request }: Context,
  file: FileEntry,
  validators: Validators,
): readonly ByteRange[] | undefined {
  const { headers } = request;
  const ifRange = headers['if-range'];
  if (headers.range === undefined || !ifRangeHolds(ifRange && String(ifRange), validators)) return undefined;
  const ranges = parseRange(headers.range, file.sizeBytes);
  if (ranges !== 'unsatisfiable') return ranges;
  throw new DavError(416, `the file has ${file.sizeBytes} bytes, and none in the range asked for`, {
    headers: { 'Content-Range': `bytes */${file.sizeBytes}`, 'Accept-Ranges': 'bytes' },
  });
}

async function getFolder(context: Context, folder: FolderEntry): Promise<void> {
  const { drive, path, response, signal } = context;
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
  if (!isWanted(context, { entityTag })) return answerEmpty(response, 304, headers);
  response.writeHead(200, {
    ...headers,
    'Content-Type': 'text/html; charset=utf-8',
    'Content-Length': page.length,
    'Content-Security-Policy': DRIVE_PAGE_POLICY,
    'X-Content-Type-Options': 'nosniff',
    'Referrer-Policy': 'no-referrer',
  });
  response.end(page);
}
