import { randomUUID } from 'node:crypto';
import type { PieceStore } from '../state/pieces/piece-store.ts';
import type { Clock } from '../util/clock.ts';
import type { HttpRequest } from '../util/http-messages.ts';
import type { Log } from '../util/log.ts';
import type { Path } from '../util/path.ts';
import { clientOf } from './clients.ts';
import type { DavHandler, Drive, Method } from './context.ts';
import { ALLOWED_SOMEWHERE, DavError, requireWritable } from './errors.ts';
import type { Exchange } from './exchange.ts';
import { answerFailure } from './failures.ts';
import { copy, move } from './methods/copy-move.ts';
import { createDelete } from './methods/delete.ts';
import { FailedPuts } from './methods/failed-puts.ts';
import { createGet, type FolderPage } from './methods/get.ts';
import { lock } from './methods/lock.ts';
import { mkcol } from './methods/mkcol.ts';
import { options } from './methods/options.ts';
import { patch } from './methods/patch.ts';
import { createPropfind } from './methods/propfind.ts';
import { proppatch } from './methods/proppatch.ts';
import { createPut } from './methods/put.ts';
import { report } from './methods/report.ts';
import { search } from './methods/search.ts';
import { unlock } from './methods/unlock.ts';
import { createNextcloud, isForNextcloud } from './nextcloud/nextcloud.ts';
import { ComputedChecksums } from './properties/computed-checksums.ts';
import { destinationOf } from './request-headers.ts';
import { parseResourceUrl, type ResourceUrl } from './resource-url.ts';
import { ignoreBody } from './unused-body.ts';
import { XmlReader } from './xml/xml-reader.ts';

export interface DavHandlerOptions {
  readonly clock: Clock;
  readonly log: Log;
  /** Maximum size of the rendered listings that are kept to be sent again, in bytes. */
  readonly listingBytesMax?: number;
  /** Makes lock tokens. */
  readonly randomUuid?: () => string;
  /** `undefined`: browsers get a plain list of a folder's files. */
  readonly folderPage?: FolderPage | undefined;
  /** Keeps the pieces of large files. `undefined`: files cannot be sent in pieces. */
  readonly pieces?: PieceStore | undefined;
  /** The files that have checksums: those for which clients gave some (the default), or all. */
  readonly checksums?: 'given' | 'all' | undefined;
}

interface MethodEntry {
  readonly run: Method;
  /** `ignored`: the body has no meaning and is discarded before `run`; `own`: `run` reads or refuses it. */
  readonly body: 'ignored' | 'own';
  /** The resources that the method changes. */
  readonly changes: readonly ('path' | 'destination')[];
}

/** Methods of HTTP and of WebDAV extensions: refused with 405. Any other is unknown and refused with 501. */
const UNSUPPORTED_METHODS = new Set(['POST', 'TRACE', 'ACL', 'MKCALENDAR']);

/** Size of the rendered listings that are kept, in bytes: about 150,000 rows. */
const LISTING_BYTES_MAX = 64 * 1024 * 1024;

/** Creates the handler of the WebDAV protocol. */
export function createDavHandler({
  clock,
  log,
  listingBytesMax = LISTING_BYTES_MAX,
  randomUuid = randomUUID,
  folderPage,
  pieces,
  checksums = 'given',
}: DavHandlerOptions): DavHandler {
  const methods = createMethods(clock, listingBytesMax, folderPage);
  const shared = {
    ...{ clock, log, randomUuid, xml: new XmlReader() },
    checksums: new ComputedChecksums(checksums === 'all'),
  };
  const handle: DavHandler = async (exchange, { user, drive }) => {
    const { request } = exchange;
    try {
      const method = methodOf(methods, request);
      const { path, hasTrailingSlash } = urlOf(exchange);
      refuseReadOnly(exchange, drive, method.changes, path);
      if (method.body === 'ignored' && (exchange.isChunked || exchange.announcedBytes !== 0))
        await ignoreBody(exchange);
      if (drive.catchUp) await drive.catchUp();
      await method.run({
        exchange,
        request,
        path,
        hasTrailingSlash,
        principal: user?.name ?? '',
        drive,
        ...shared,
      });
    } catch (error) {
      await answerFailure(exchange, log, error);
    }
  };
  const nextcloud = createNextcloud({ handle, pieces, ...shared });
  return (exchange, access) =>
    isForNextcloud(exchange) ? nextcloud(exchange, access) : handle(exchange, access);
}

/** Creates the methods, with the memory that each of them has of earlier requests. */
function createMethods(
  clock: Clock,
  listingBytesMax: number,
  folderPage: FolderPage | undefined,
): ReadonlyMap<string, MethodEntry> {
  const get = createGet(folderPage);
  const failedPuts = new FailedPuts(clock);
  return new Map<string, MethodEntry>([
    ['OPTIONS', { run: options, body: 'ignored', changes: [] }],
    ['GET', { run: get, body: 'ignored', changes: [] }],
    ['HEAD', { run: get, body: 'ignored', changes: [] }],
    ['PUT', { run: createPut(failedPuts), body: 'own', changes: ['path'] }],
    ['PATCH', { run: patch, body: 'own', changes: ['path'] }],
    ['DELETE', { run: createDelete(failedPuts), body: 'ignored', changes: ['path'] }],
    ['MKCOL', { run: mkcol, body: 'own', changes: ['path'] }],
    // RFC 2518 gave COPY and MOVE a body, and old clients still send it.
    ['COPY', { run: copy, body: 'ignored', changes: ['destination'] }],
    ['MOVE', { run: move, body: 'ignored', changes: ['path', 'destination'] }],
    ['PROPFIND', { run: createPropfind(listingBytesMax), body: 'own', changes: [] }],
    ['SEARCH', { run: search, body: 'own', changes: [] }],
    ['REPORT', { run: report, body: 'own', changes: [] }],
    ['PROPPATCH', { run: proppatch, body: 'own', changes: ['path'] }],
    ['LOCK', { run: lock, body: 'own', changes: ['path'] }],
    ['UNLOCK', { run: unlock, body: 'ignored', changes: ['path'] }],
  ]);
}

/**
 * Refuses a change by a read-only user before the client sends its body, which may be long. Throws `DavError`.
 */
function refuseReadOnly(
  exchange: Exchange,
  { isReadOnly, historyFolders }: Drive,
  changes: MethodEntry['changes'],
  path: Path,
): void {
  if (!isReadOnly) return;
  const { statusWhenReadOnly } = clientOf(exchange.request);
  for (const place of changes) {
    const changed = place === 'path' ? path : destinationOf(exchange).path;
    if (historyFolders?.owns(changed)) throw pastIsReadOnly(changed, statusWhenReadOnly);
    requireWritable(isReadOnly, changed, statusWhenReadOnly);
  }
}

/** The precondition is that of RFC 3744 §7.1.1. */
function pastIsReadOnly(path: Path, status: number): DavError {
  return new DavError(
    status,
    `${path} shows what was there before and cannot be changed; copy it to another place to restore it`,
    { precondition: 'need-privileges' },
  );
}

function methodOf(methods: ReadonlyMap<string, MethodEntry>, { method = '' }: HttpRequest): MethodEntry {
  const known = methods.get(method);
  if (known) return known;
  const status = UNSUPPORTED_METHODS.has(method) ? 405 : 501;
  throw new DavError(status, `${method} is not supported; Allow lists the methods that are`, {
    headers: { Allow: ALLOWED_SOMEWHERE },
  });
}

/** `OPTIONS *` asks about the server as a whole (RFC 9110 §9.3.7). */
function urlOf({ request, target }: Exchange): ResourceUrl {
  return parseResourceUrl(request.method === 'OPTIONS' && target === '*' ? '/' : target);
}
