import type { OutgoingHttpHeaders } from 'node:http';
import type { Entry, FileEntry, WriteMode, Written } from '../../drive/files.ts';
import { endedBy } from '../../util/ended-by.ts';
import { onAbort } from '../../util/on-abort.ts';
import { notAllowed } from '../allow.ts';
import { answerEmpty } from '../answers/answer.ts';
import { entityTagOf } from '../conditions/conditions.ts';
import { type Conditions, checkConditions } from '../conditions/preconditions.ts';
import { digestsIn, ocChecksums, verified } from '../digest.ts';
import { DavError } from '../errors.ts';
import { httpDate, mtimeOf } from '../headers.ts';
import { hrefOf } from '../href.ts';
import { type RequestLock, withRequestLock } from '../locks/request-lock.ts';
import type { Context } from '../method.ts';
import { requireParent } from '../parent-folder.ts';
import { checksumsProperty } from '../properties/checksums.ts';

/** Time for the second half of a create; Explorer and Finder take a second or two. */
const EMPTY_HOLD_MS = 60_000;

/**
 * RFC 4918 §9.7, RFC 9110 §9.3.4. All that can be refused is refused before the body is asked for. A PUT whose
 * sender does not know that it succeeded is remembered, as it may remove what it believes to have left behind.
 */
export async function put(context: Context): Promise<void> {
  const { principal, path, failedPuts, signal } = context;
  const note = () => failedPuts.note(principal, path);
  onAbort(signal, note);
  try {
    await store(context);
    if (!signal.aborted) failedPuts.forget(principal, path);
  } catch (error) {
    note();
    throw error;
  }
}

async function store(context: Context): Promise<void> {
  const { drive, path, signal } = context;
  refusePartial(context);
  // The conditions themselves are held when the body is there.
  const entry = await drive.files.statForWrite(path, { isPinned: false }, signal);
  if (entry?.kind === 'folder') throw notAllowed(`${path} is a folder; its content cannot be put`, entry);
  if (context.namesCollection)
    throw new DavError(409, 'PUT makes a file, and this name ends with a slash; leave that out');
  const conditions = await checkConditions(context, entry);
  const stored = await withRequestLock(context, conditions, [{ path, membership: !entry }], async (lock) => {
    if (!entry) await requireParent(context, path);
    const written = await write(context, entry, modeOf(context, entry, conditions), lock);
    await keepChecksums(context, written.entry);
    return written;
  });
  // `write` makes files only.
  if (stored.entry.kind !== 'file') throw new Error('a write returned a folder');
  answer(context, stored.entry, stored.created);
}

/** What a client means as a part, or as packed, would be stored as if it were the whole file. */
function refusePartial({ request }: Context): void {
  if (request.headers['content-range'] !== undefined)
    throw new DavError(400, 'PUT replaces a whole file; send it without Content-Range (RFC 9110 §14.5)');
  const coding = String(request.headers['content-encoding'] ?? '').trim();
  if (coding.split(/[\s,]+/).some((one) => /^((x-)?(gzip|compress)|deflate|br|zstd)$/i.test(one)))
    throw new DavError(415, `files are stored as they come; send it without Content-Encoding: ${coding}`);
}

/** The conditions held a moment ago; with this the service holds them again in the commit itself. */
function modeOf({ request }: Context, entry: FileEntry | undefined, conditions: Conditions): WriteMode {
  if (entry) return conditions.pinsRevision ? { if: 'rev', rev: entry.rev } : { if: 'any' };
  return String(request.headers['if-none-match'] ?? '').trim() === '*' ? { if: 'absent' } : { if: 'any' };
}

async function write(
  context: Context,
  entry: FileEntry | undefined,
  mode: WriteMode,
  lock: RequestLock,
): Promise<Written> {
  const { drive, path, body, request } = context;
  const modifiedMs = mtimeOf(request.headers);
  const sizeBytes = body.announcedBytes;
  const isFirstHalf = !entry && sizeBytes === 0 && !body.isChunked && context.client.createsEmptyFirst;
  if (isFirstHalf && modifiedMs === undefined && mode.if === 'any') {
    const held = await drive.files.hold(path, EMPTY_HOLD_MS);
    // If somebody was quicker it is a file to be emptied.
    if (held.created) return held;
  }
  const options = {
    mode,
    ...(sizeBytes !== undefined && { sizeBytes }),
    ...(modifiedMs !== undefined && { modifiedMs }),
  };
  const whole = endedBy(verified(body, digestsIn(request.headers)), () => lock.requireUnbroken());
  return drive.files.write(path, whole, options, bodySignal(context));
}

/** A client that has gone before its body was whole ends the write; one that has sent all gets it stored. */
function bodySignal({ request, signal }: Context): AbortSignal {
  const controller = new AbortController();
  onAbort(signal, (reason) => {
    if (!request.complete) controller.abort(reason);
  });
  return controller.signal;
}

/** rclone compares what it sent with what a listing shows. The file is stored in any case. */
async function keepChecksums({ drive, request, log }: Context, entry: Entry): Promise<void> {
  const sent = ocChecksums(request.headers);
  const property = entry.kind === 'file' ? checksumsProperty(entry, sent) : undefined;
  if (!property) return;
  try {
    await drive.state.properties.change(entry.id, [{ set: property }]);
  } catch (error) {
    log.warn('the checksums of a file could not be kept', { reason: String(error) });
  }
}

/** davfs2 and Finder ask again for what they do not find here. */
function answer({ request, response, path }: Context, entry: FileEntry, created: boolean): void {
  const headers: OutgoingHttpHeaders = {
    ETag: entityTagOf(entry),
    'Last-Modified': httpDate(entry.modifiedMs),
  };
  if (mtimeOf(request.headers) !== undefined) headers['X-OC-Mtime'] = 'accepted';
  if (created) headers['Location'] = hrefOf(path, false);
  answerEmpty(response, created ? 201 : 204, headers);
}
