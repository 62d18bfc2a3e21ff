import type { IncomingHttpHeaders } from 'node:http';
import { DavError, refuseReserved, requireWritable } from '../dav/errors.ts';
import { answerFailure } from '../dav/failures.ts';
import type { Clock } from '../util/clock.ts';
import type { Log } from '../util/log.ts';
import type { Path } from '../util/path.ts';
import { readBody } from '../util/whole-body.ts';
import { appPasswords, endAppPassword, makeAppPassword } from './app-passwords.ts';
import { changes } from './changes.ts';
import { driveInfo } from './drive-info.ts';
import { restore, trash, undelete, version, versions } from './history.ts';
import { discardWrite, keptWrite, keptWrites, retryWrite } from './kept-writes.ts';
import { locks } from './locks.ts';
import { type ApiExchange, type Context, type Drive, Input, type Route } from './route.ts';
import { search } from './search.ts';
import { changeLink, links, share, unshare } from './shared-links.ts';
import { Streams } from './streams.ts';
import { thumbnail } from './thumbnail.ts';
import { Uploads } from './upload.ts';
import { endUploadLink, makeUploadLink, uploadLinks } from './upload-links.ts';
import { endUpload, upload, uploadPart, uploadState } from './uploads.ts';
import { zip } from './zip.ts';

/** The address of the functions of the web application. */
const API_PATH = '/.davgate/api/';

/** Maximum size of the body of a request with JSON, in bytes. */
const BODY_BYTES_MAX = 64 * 1024;

/** What the web application calls beside WebDAV, by name. */
const ROUTES: ReadonlyMap<string, Route> = new Map([
  ['drive', driveInfo],
  ['changes', changes],
  ['search', search],
  ['thumbnail', thumbnail],
  ['zip', zip],
  ['versions', versions],
  ['version', version],
  ['restore', restore],
  ['trash', trash],
  ['undelete', undelete],
  ['links', links],
  ['share', share],
  ['change-link', changeLink],
  ['unshare', unshare],
  ['upload', upload],
  ['upload-state', uploadState],
  ['upload-part', uploadPart],
  ['end-upload', endUpload],
  ['upload-links', uploadLinks],
  ['make-upload-link', makeUploadLink],
  ['end-upload-link', endUploadLink],
  ['locks', locks],
  ['kept-writes', keptWrites],
  ['kept-write', keptWrite],
  ['retry-write', retryWrite],
  ['discard-write', discardWrite],
  ['app-passwords', appPasswords],
  ['make-app-password', makeAppPassword],
  ['end-app-password', endAppPassword],
]);

export interface BrowserHandlerOptions {
  readonly clock: Clock;
  readonly log: Log;
  /** Returns the app passwords of a user who may have some. */
  readonly appPasswordsOf?: Context['appPasswordsOf'];
  /** Returns the upload links of a user who may have some. */
  readonly uploadLinksOf?: Context['uploadLinksOf'];
}

/** The user that a request was admitted for, and the drive as this user sees it. */
interface Access {
  /** `undefined` when the drive is open to all. */
  readonly user: { readonly name: string } | undefined;
  readonly drive: Drive;
  /** Present in a browser's session. */
  readonly csrfToken?: string | undefined;
  /** The name of the provider at which that session began. */
  readonly providerName?: string | undefined;
  /** Whether that session has ended since. */
  readonly isOver?: (() => boolean) | undefined;
}

/**
 * Answers an admitted request below `/.davgate/api/`; returns `undefined` for every other path. `closing` is aborted when
 * the server takes no new requests.
 */
export type BrowserHandler = (
  exchange: ApiExchange,
  access: Access,
  closing: AbortSignal,
) => Promise<void> | undefined;

/** Creates the handler of what the web application calls beside WebDAV. */
export function createBrowserHandler({
  clock,
  log,
  appPasswordsOf = () => undefined,
  uploadLinksOf = () => undefined,
}: BrowserHandlerOptions): BrowserHandler {
  const shared = {
    streams: new Streams(),
    uploads: new Uploads(),
    appPasswordsOf,
    uploadLinksOf,
    clock,
    log,
  };
  return (exchange, { user, csrfToken, providerName, isOver = () => false, drive }, closing) => {
    if (!exchange.path.startsWith(API_PATH)) return undefined;
    const answered = async (): Promise<void> => {
      const route = routeOf(exchange);
      const input = await inputOf(exchange, route);
      const { signal } = exchange;
      if (route.changesDrive) refuseChange(drive, input.path('path'));
      if (drive.catchUp) await drive.catchUp();
      const access = { user: user?.name, csrfToken, providerName, isOver, drive };
      await route.run({ exchange, signal, closing, ...access, input, ...shared });
    };
    return answered().catch((error) => answerFailure(exchange, log, error));
  };
}

/** Throws `DavError` 403 unless the user may change the resource. */
function refuseChange({ isReadOnly }: Drive, path: Path): void {
  refuseReserved(path);
  requireWritable(isReadOnly, path);
}

/** Throws `DavError` 404 or 405. */
function routeOf({ path, request }: ApiExchange): Route {
  const name = path.slice(API_PATH.length);
  const route = ROUTES.get(name);
  if (!route) throw new DavError(404, `davgate has no function ${JSON.stringify(name)}; load the page again`);
  if (request.method === route.method) return route;
  throw new DavError(405, `call ${name} with ${route.method}`, { headers: { Allow: route.method } });
}

/** Returns the values that a request for `route` brings. Throws `DavError` 400, 413 or 415. */
export async function inputOf(
  exchange: ApiExchange,
  { method, formBytesMax, takesBytes = false }: Pick<Route, 'method' | 'formBytesMax' | 'takesBytes'>,
): Promise<Input> {
  const { url = '', headers } = exchange.request;
  if (takesBytes) checkType(headers, 'application/octet-stream');
  if (method === 'GET' || takesBytes) return new Input(new Map(new URL(url, 'http://davgate').searchParams));
  if (formBytesMax !== undefined) {
    checkType(headers, 'application/x-www-form-urlencoded');
    return new Input(new Map(new URLSearchParams(await bodyText(exchange, formBytesMax))));
  }
  // A page of another site can send a form, and plain text, but JSON and bytes only after it was allowed to (CORS).
  checkType(headers, 'application/json');
  const value = parsed(await bodyText(exchange, BODY_BYTES_MAX));
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw notStrings();
  const entries = Object.entries(value);
  if (!entries.every(([, one]) => typeof one === 'string')) throw notStrings();
  return new Input(new Map(entries));
}

function checkType(headers: IncomingHttpHeaders, wanted: string): void {
  const [type = ''] = (headers['content-type'] ?? '').split(';');
  if (type.trim().toLowerCase() !== wanted) throw new DavError(415, `send the body as ${wanted}`);
}

async function bodyText(exchange: ApiExchange, bytesMax: number): Promise<string> {
  const body = await readBody(exchange.body(), bytesMax);
  if (!body) throw new DavError(413, `the body may have ${bytesMax} bytes at most`);
  return body.toString();
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw notStrings();
  }
}

function notStrings(): DavError {
  return new DavError(400, 'the body must be a JSON object of strings');
}
