import type { OutgoingHttpHeaders } from 'node:http';
import type { Entry, FileEntry, WriteMode, Written } from '../../drive/files.ts';
import { onAbort } from '../../util/abort.ts';
import { clientOf } from '../clients.ts';
import {
  checkConditions,
  entityTagOf,
  httpDate,
  type MetConditions,
  requireParent,
} from '../conditions/preconditions.ts';
import type { Context } from '../context.ts';
import { DavError, methodNotAllowed } from '../errors.ts';
import { type RequestLock, untilUnbroken, withRequestLock } from '../locks/request-lock.ts';
import {
  CHECKSUM_HEADERS,
  digestsIn,
  isChecksum,
  ocChecksums,
  verifiedBody,
} from '../properties/checksums.ts';
import { joined } from '../properties/computed-checksums.ts';
import { creationDateProperty } from '../properties/creation-date.ts';
import { parseSeconds } from '../properties/property-times.ts';
import { hrefOf } from '../resource-url.ts';
import type { NewContent } from './append.ts';

/** How long a placeholder waits for its content, in ms. Explorer and Finder send it after a second or two. */
const PLACEHOLDER_MS = 60_000;

/** Returns the content for a file that is `entry` now, or that does not exist. Throws `DavError` to refuse it. */
export type ContentFor = (entry: FileEntry | undefined) => NewContent;

interface StoreOptions {
  /** Whether the content depends on the current revision, so that the service is asked for it. */
  readonly isPinned: boolean;
  /** Aborted when the body will not arrive. */
  readonly signal: AbortSignal;
  /** Whether the request may only create the file. */
  readonly isNew?: boolean;
}

export interface Stored {
  readonly entry: FileEntry;
  readonly created: boolean;
  /** Whether it has the creation date that the request asked for. */
  readonly isDated: boolean;
}

/** Stores a file at the path of the request, with the conditions, the time and the checksums in its headers. */
export async function storeFile(
  context: Context,
  contentFor: ContentFor,
  { isPinned, signal, isNew = false }: StoreOptions,
): Promise<Stored> {
  const { drive, path, exchange } = context;
  // The commit checks the conditions again, once the body is complete.
  const entry = await drive.files.statForWrite(path, { isPinned }, exchange.signal);
  if (entry?.kind === 'folder') throw methodNotAllowed(`${path} is a folder; PUT writes files only`, entry);
  if (context.hasTrailingSlash)
    throw new DavError(409, 'the URL ends with a slash, which names a folder; PUT the file without it');
  if (entry && isNew) throw new DavError(412, `${path} already exists, and the request may not replace it`);
  const conditions = await checkConditions(context, entry);
  const stored = await withRequestLock(context, conditions, [{ path, membership: !entry }], async (lock) => {
    if (!entry) await requireParent(context, path);
    const content = contentFor(entry);
    const { goesOnFrom } = content;
    const pinned = typeof goesOnFrom === 'object' && { if: 'rev' as const, rev: goesOnFrom.rev };
    const isAbsent = isNew || goesOnFrom === 'nothing';
    const mode = pinned || (isAbsent ? { if: 'absent' as const } : modeOf(context, entry, conditions));
    // Those of appended bytes are not those of the file.
    const given = pinned ? [] : ocChecksums(context.request.headers).filter(isChecksum);
    const passing = context.checksums.passing(content.body, given);
    const whole = { ...content, body: passing.bytes };
    const written = await write(context, entry, whole, { mode, lock, signal });
    if (written.entry.kind === 'file')
      await context.checksums.keep(context, written.entry, joined(given, passing.checksums));
    return { ...written, isDated: await keepCreationDate(context, written.entry) };
  });
  if (stored.entry.kind !== 'file') throw new Error('a write returned a folder');
  return { entry: stored.entry, created: stored.created, isDated: stored.isDated };
}

/** Returns the mode in which the service checks the conditions again, as part of the commit. */
function modeOf(
  { request: { headers } }: Context,
  entry: FileEntry | undefined,
  conditions: MetConditions,
): WriteMode {
  if (!entry) return String(headers['if-none-match'] ?? '').trim() === '*' ? { if: 'absent' } : { if: 'any' };
  // `If-Match: *` as well: the service has no other condition by which a file deleted meanwhile is not created again.
  const isPinned = conditions.pinsRevision || headers['if-match'] !== undefined;
  return isPinned ? { if: 'rev', rev: entry.rev } : { if: 'any' };
}

/** Returns the modification time that the client wants, in ms since 1970. */
function modifiedMsOf({ headers }: Context['request']): number | undefined {
  return parseSeconds(String(headers['x-oc-mtime'] ?? ''));
}

/** Returns the creation date that the client wants, in ms since 1970 (Nextcloud's clients). */
function createdMsOf({ headers }: Context['request']): number | undefined {
  return parseSeconds(String(headers['x-oc-ctime'] ?? ''));
}

/** Stores the creation date that the request asks for. Returns whether it has. */
async function keepCreationDate({ drive, request, log }: Context, { id }: Entry): Promise<boolean> {
  const createdMs = createdMsOf(request);
  if (createdMs === undefined) return false;
  try {
    await drive.state.properties.change(id, [{ set: creationDateProperty(createdMs) }]);
    return true;
  } catch (error) {
    // The file is stored, and the client can set the date again.
    log.warn('cannot store the creation date of a file', { reason: String(error) });
    return false;
  }
}

interface Store {
  readonly mode: WriteMode;
  readonly lock: RequestLock;
  readonly signal: AbortSignal;
}

async function write(
  { drive, path, exchange, request }: Context,
  entry: FileEntry | undefined,
  { body, sizeBytes }: NewContent,
  { mode, lock, signal }: Store,
): Promise<Written> {
  const modifiedMs = modifiedMsOf(request);
  const isFirstHalf = !entry && sizeBytes === 0 && !exchange.isChunked && clientOf(request).createsEmptyFirst;
  if (isFirstHalf && modifiedMs === undefined && mode.if === 'any') {
    const placeholder = await drive.files.keepPlaceholder(path, PLACEHOLDER_MS);
    // Otherwise another client has created the file, and this PUT empties it.
    if (placeholder.created) return placeholder;
  }
  const options = {
    mode,
    ...(sizeBytes !== undefined && { sizeBytes }),
    ...(modifiedMs !== undefined && { modifiedMs }),
  };
  return drive.files.write(path, untilUnbroken(body, lock), options, signal);
}

/** Returns the body, which ends with an error if it does not match the client's checksums. */
export function checkedBody(
  { exchange, request: { headers } }: Context,
  body: AsyncIterable<Uint8Array> = exchange.body(),
): AsyncIterable<Uint8Array> {
  const hasChecksums = CHECKSUM_HEADERS.some((name) => headers[name] !== undefined);
  return hasChecksums ? verifiedBody(body, digestsIn(headers)) : body;
}

/** Returns a signal that aborts when the client goes away before its body is complete, and not after that. */
export function bodySignal({ request, exchange }: Context): AbortSignal {
  const controller = new AbortController();
  onAbort(exchange.signal, (reason) => {
    if (!request.complete) controller.abort(reason);
  });
  return controller.signal;
}

/** davfs2 and Finder send another request for any of these headers that is missing. */
export async function answerStored(
  { exchange, path, request }: Context,
  { entry, created, isDated }: Stored,
): Promise<void> {
  const headers: OutgoingHttpHeaders = {
    ETag: entityTagOf(entry),
    'Last-Modified': httpDate(entry.modifiedMs),
  };
  if (modifiedMsOf(request) !== undefined) headers['X-OC-Mtime'] = 'accepted';
  if (isDated) headers['X-OC-CTime'] = 'accepted';
  if (created) headers['Location'] = hrefOf(exchange, path, false);
  await exchange.answer({ status: created ? 201 : 204, headers, body: undefined });
}
