import { DavError } from '../dav/errors.ts';
import { answerFailure } from '../dav/failures.ts';
import { FileError } from '../drive/errors.ts';
import type { Clock } from '../util/clock.ts';
import type { Log } from '../util/log.ts';
import { join, keyOf, numberedPath, type Path, PathError, pathOf } from '../util/path.ts';
import { inputOf } from './handler.ts';
import { type ApiExchange, answerJson, type Drive, type Input, type Route } from './route.ts';
import { Uploads } from './upload.ts';
import {
  answerState,
  beginUpload,
  giveUp,
  receivePart,
  type UploadContext,
  wholeNumberIn,
} from './uploads.ts';

/** The functions of the page of an upload link. */
const SEND_PATH = '/.davgate/send/';

/** Has the token of the link. It is not in the address, which logs show. */
const TOKEN_HEADER = 'x-upload-link';
/** Has the proof that the sender knows the password. */
const KEY_HEADER = 'x-upload-key';

/** Everybody can begin uploads, but those of users have limits of their own. */
const UPLOAD_LIMITS = { ofUser: 10, unfinished: 50, ended: 2_000 };

/** An upload link that works at this moment. */
export interface OpenUploadLink {
  readonly id: string;
  readonly label: string;
  /** The folder, as the user who made the link sees it. */
  readonly path: Path;
  readonly needsPassword: boolean;
  readonly sizeBytesMax: number | undefined;
  readonly usedBytes: number;
  /** The drive of that user now. */
  readonly drive: Drive;
  /** Returns whether `unlock` has returned this key. */
  isKey(key: string): boolean;
  /** Returns a key for the right password, `undefined` for a wrong one, or how long the client must wait, in ms. */
  unlock(password: string, address: string): Promise<string | undefined | { readonly retryAfterMs: number }>;
  /** Counts bytes; returns `false` if they do not fit. */
  use(bytes: number): Promise<boolean>;
  /** Takes back the bytes of a file that was not stored. */
  takeBack(bytes: number): Promise<void>;
}

export interface SendingOptions {
  readonly clock: Clock;
  readonly log: Log;
  /** Returns the link with this token, unless it has ended. */
  readonly linkOf: (token: string) => Promise<OpenUploadLink | undefined>;
}

interface Context extends UploadContext {
  readonly link: OpenUploadLink;
  readonly log: Log;
  /** Paths of uploads under way. */
  readonly taken: Set<string>;
}

interface SendRoute extends Pick<Route, 'method' | 'takesBytes'> {
  /** Whether it needs no key of a link with a password. */
  readonly isOpen?: true;
  readonly run: (context: Context) => Promise<void>;
}

const ROUTES: ReadonlyMap<string, SendRoute> = new Map<string, SendRoute>([
  ['about', { method: 'GET', isOpen: true, run: about }],
  ['unlock', { method: 'POST', isOpen: true, run: unlock }],
  ['upload', { method: 'POST', run: upload }],
  ['upload-state', { method: 'GET', run: answerState }],
  ['upload-part', { method: 'POST', takesBytes: true, run: receivePart }],
  ['end-upload', { method: 'POST', run: giveUp }],
]);

/**
 * Creates the handler of the requests of people who have an upload link and no login; it returns `undefined` for every other
 * request. They may add files, with the rights of the user who made the link, and learn nothing else of the drive.
 */
export function createSendHandler({ clock, log, linkOf }: SendingOptions) {
  const shared = { uploads: new Uploads(UPLOAD_LIMITS), taken: new Set<string>(), clock, log };
  return (exchange: ApiExchange, closing: AbortSignal): Promise<void> | undefined => {
    const { path, request, signal } = exchange;
    const route = path.startsWith(SEND_PATH) ? ROUTES.get(path.slice(SEND_PATH.length)) : undefined;
    if (!route || route.method !== request.method) return undefined;
    const answered = async (): Promise<void> => {
      const link = await linkOf(String(request.headers[TOKEN_HEADER] ?? ''));
      if (!link) throw ended();
      if (!route.isOpen && !hasKey(exchange, link)) throw passwordMissing();
      const input = await inputOf(exchange, route);
      const { drive } = link;
      await route.run({ exchange, signal, closing, user: link.id, drive, input, link, ...shared });
    };
    return answered().catch((error) => answerFailure(exchange, log, forSender(error, log)));
  };
}

function hasKey({ request }: ApiExchange, link: OpenUploadLink): boolean {
  return !link.needsPassword || link.isKey(String(request.headers[KEY_HEADER] ?? ''));
}

/** `about`: the label of the link, and the bytes that may still come; with a password only that there is one. */
async function about({ exchange, link, drive, signal }: Context): Promise<void> {
  if (!hasKey(exchange, link)) return answerJson(exchange, { needsPassword: true });
  await requireFolder(drive, link.path, signal);
  const { label, sizeBytesMax, usedBytes } = link;
  const leftBytes = sizeBytesMax === undefined ? undefined : Math.max(0, sizeBytesMax - usedBytes);
  await answerJson(exchange, { needsPassword: false, label, leftBytes });
}

/** `unlock`: takes the `password` of the link, and answers with the key that other requests show. */
async function unlock({ exchange, link, input, log }: Context): Promise<void> {
  const key = await link.unlock(input.text('password'), exchange.address);
  if (typeof key === 'string') return answerJson(exchange, { key });
  if (key === undefined) {
    log.warn('wrong password of an upload link', { address: exchange.address, link: link.id });
    throw new DavError(403, 'wrong password');
  }
  const seconds = Math.ceil(key.retryAfterMs / 1000);
  throw new DavError(429, `too many wrong passwords; try again in ${seconds} seconds`, {
    headers: { 'Retry-After': seconds },
  });
}

/** `upload`: begins to store a file of `size` bytes with this `name`, or with a number after it where the name is taken. */
async function upload(context: Context): Promise<void> {
  const { link, drive, input, signal, taken } = context;
  await requireFolder(drive, link.path, signal);
  const wanted = join(link.path, nameIn(input));
  const sizeBytes = wholeNumberIn(input, 'size');
  if (!(await link.use(sizeBytes))) throw new DavError(413, 'the files are larger than this link takes');
  let path: Path | undefined;
  const release = (isStored: boolean) => {
    if (path !== undefined) taken.delete(keyIn(link, path));
    if (!isStored) void link.takeBack(sizeBytes).catch(() => undefined);
  };
  let hasBegun = false;
  try {
    path = await freePathFor(context, wanted);
    await beginUpload(context, path, { if: 'absent' }, (isStored) => {
      hasBegun = true;
      release(isStored);
    });
    hasBegun = true;
  } finally {
    if (!hasBegun) release(false);
  }
}

/** Returns the path, or the first free one with a number after its name, and adds it to those that are taken. */
async function freePathFor({ link, drive, signal, taken }: Context, wanted: Path): Promise<Path> {
  for (let number = 0; ; number++) {
    const path = number === 0 ? wanted : numberedPath(wanted, number);
    if (taken.has(keyIn(link, path))) continue;
    // Before the drive is asked: another upload must not choose it meanwhile.
    taken.add(keyIn(link, path));
    let isFree = false;
    try {
      isFree = (await drive.files.stat(path, signal)) === undefined;
    } finally {
      if (!isFree) taken.delete(keyIn(link, path));
    }
    if (isFree) return path;
  }
}

/** Two users may see different folders at one path. */
function keyIn({ id }: OpenUploadLink, path: Path): string {
  return `${id} ${keyOf(path)}`;
}

/** Throws `DavError` 404 without the folder, and 403 if the user who made the link may not write there now. */
async function requireFolder(drive: Drive, path: Path, signal: AbortSignal): Promise<void> {
  const entry = await drive.files.stat(path, signal);
  if (entry?.kind !== 'folder') throw ended();
  if (drive.isReadOnly?.(path)) throw notAllowed();
}

/** Throws `DavError` 422. The folder .davgate at the top is davgate's own, and names with a dot are hidden on many systems. */
function nameIn(input: Input): string {
  const name = input.text('name');
  try {
    pathOf([name]);
  } catch (error) {
    if (error instanceof PathError) throw badName();
    throw error;
  }
  if (name.startsWith('.') || /\p{Cc}/u.test(name)) throw badName();
  return name;
}

function ended(): DavError {
  return new DavError(404, 'this link does not work any more; ask for another one');
}

function badName(): DavError {
  return new DavError(422, 'a file with this name cannot be stored; rename it');
}

/** The unknown scheme keeps browsers from asking for a password themselves. */
function passwordMissing(): DavError {
  return new DavError(401, 'this link needs its password', {
    headers: { 'WWW-Authenticate': 'Link realm="davgate"' },
  });
}

/** Returns an error that says nothing of the drive: those of the drive name folders and other users. */
function forSender(error: unknown, log: Log): unknown {
  if (error instanceof DavError) {
    return error.status === 423
      ? new DavError(423, 'the folder is locked at the moment; try again later')
      : error;
  }
  if (!(error instanceof FileError)) return error;
  switch (error.fault) {
    case 'not-found':
    case 'not-a-folder':
    case 'parent-missing':
      return ended();
    case 'forbidden':
    case 'not-entitled':
      return notAllowed();
    case 'bad-name':
      return badName();
    case 'exists':
    case 'changed':
    case 'is-a-folder':
      return new DavError(412, 'the name was taken at this moment; send the file again');
    case 'too-large':
      return new DavError(413, 'this file is too large');
    case 'no-space':
    case 'over-quota':
      return new DavError(507, 'there is no room for this file');
    case 'incomplete':
    case 'checksum':
      return new DavError(400, 'the file did not arrive whole; send it again');
    default:
      log.error('an upload link could not take a file', { fault: error.fault, reason: error.message });
      return new FileError(error.fault, 'the drive cannot take files at the moment; try again later', {
        ...error.details,
        cause: error,
      });
  }
}

function notAllowed(): DavError {
  return new DavError(403, 'files cannot be sent by this link at the moment');
}
