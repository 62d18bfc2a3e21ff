import { decodeName } from '../util/url-names.ts';
import { addressOf, join, nameOf, parentOf } from './paths.ts';
import { waitSecondsIn } from './retries.ts';
import { driveInfo, fetchSignedIn, SignedOut } from './session.ts';

/** A file or folder as the drive last described it. */
export interface Item {
  readonly kind: 'file' | 'folder';
  readonly path: string;
  readonly name: string;
  /** Present for files. */
  readonly sizeBytes?: number;
  /** Milliseconds since 1970. */
  readonly modifiedMs?: number;
  /** The entity tag of a file. */
  readonly etag?: string;
}

/** An answer other than success. The message is the gateway's own sentence, or the status. */
export class DavFailure extends Error {
  override readonly name = 'DavFailure';

  constructor(
    /** 0: no answer came. */
    readonly status: number,
    message: string,
    /** How long to wait before another try, in seconds. */
    readonly waitSeconds = 0,
  ) {
    super(message);
  }
}

const PROPFIND = `<?xml version="1.0" encoding="utf-8"?>
<propfind xmlns="DAV:"><prop><resourcetype/><getcontentlength/><getlastmodified/><getetag/></prop></propfind>`;

/** The last listing of the drive. */
let listed: Listed | undefined;

interface Listed {
  readonly folder: string;
  readonly text: string;
  /** `undefined`: none, or not known. */
  readonly hidden: readonly string[] | undefined;
  readonly items: readonly Item[];
}

/** Returns the children of a folder, as the same object while they are the same. Throws `DavFailure`. */
export async function list(folder: string, signal?: AbortSignal): Promise<readonly Item[]> {
  const [text, hidden] = await Promise.all([
    propfind(addressOf(folder, 'folder'), '1', signal),
    driveInfo().then(
      ({ hiddenPaths }) => hiddenPaths,
      () => undefined,
    ),
  ]);
  if (listed?.folder === folder && listed.text === text && listed.hidden === hidden) return listed.items;
  const [, ...children] = responsesIn(text);
  const items = children
    .map((response) => itemOf(response, folder))
    .filter(({ path }) => !hidden?.includes(path));
  listed = { folder, text, hidden, items };
  return items;
}

async function propfind(address: string, depth: '0' | '1', signal?: AbortSignal): Promise<string> {
  const headers = { Depth: depth, 'Content-Type': 'application/xml' };
  return (await send('PROPFIND', address, { headers, body: PROPFIND, ...(signal && { signal }) })).text();
}

function responsesIn(xml: string): readonly Element[] {
  const answer = new DOMParser().parseFromString(xml, 'application/xml');
  return [...answer.getElementsByTagNameNS('DAV:', 'response')];
}

/** Returns the file or folder at `path`. Throws `DavFailure`. */
export async function find(path: string): Promise<Item> {
  if (path === '/') return { kind: 'folder', path, name: '' };
  const [found] = responsesIn(await propfind(addressOf(path, 'file'), '0'));
  if (!found) throw new DavFailure(404, path);
  return itemOf(found, parentOf(path));
}

export async function createFolder(path: string): Promise<void> {
  await send('MKCOL', addressOf(path, 'folder'));
}

/** Moves or copies `item`. Unless it `replaces` the target, throws `DavFailure` 412 when that exists. */
export async function relocate(
  how: 'MOVE' | 'COPY',
  item: Item,
  to: string,
  { replaces }: { readonly replaces: boolean } = { replaces: false },
): Promise<void> {
  const Destination = new URL(addressOf(to, item.kind), location.href).href;
  const headers = { Destination, Overwrite: replaces ? 'T' : 'F' };
  await send(how, addressOf(item.path, item.kind), { headers });
}

/** Removes `item`; a file only if it is unchanged. `isRecoverable`: so that it can be undone. Throws `DavFailure`. */
export async function remove(
  { kind, path, etag }: Item,
  { isRecoverable }: { readonly isRecoverable: boolean },
): Promise<void> {
  const headers = {
    ...(etag !== undefined && { 'If-Match': etag }),
    ...(isRecoverable && { Prefer: 'recoverable' }),
  };
  await send('DELETE', addressOf(path, kind), { headers });
}

/** Returns the text of a file. Throws `DavFailure`. */
export async function readText(path: string, signal: AbortSignal): Promise<string> {
  return (await send('GET', addressOf(path, 'file'), { signal })).text();
}

/** Sends a request. Throws `DavFailure` unless it succeeds. */
export async function send(method: string, address: string, init: RequestInit = {}): Promise<Response> {
  let answer: Response;
  try {
    answer = await fetchSignedIn(method, address, init);
  } catch (cause) {
    if (init.signal?.aborted) throw cause;
    throw cause instanceof SignedOut ? new DavFailure(401, cause.message) : new DavFailure(0, String(cause));
  }
  const { ok, status, headers } = answer;
  if (ok) return answer;
  const waitSeconds = waitSecondsIn(headers.get('retry-after'));
  throw new DavFailure(status, reasonIn(await answer.text(), status), waitSeconds);
}

/** Returns the sentence in an answer that refuses: a plain text, or the description in an XML one. */
export function reasonIn(body: string, status: number): string {
  if (!body.startsWith('<')) return body.trim() || `Status ${status}`;
  const xml = new DOMParser().parseFromString(body, 'application/xml');
  const [message] = xml.getElementsByTagNameNS('*', 'message');
  return (message ?? xml.documentElement).textContent?.trim() || `Status ${status}`;
}

function itemOf(response: Element, folder: string): Item {
  // A property that the item does not have is there too, empty.
  const text = (name: string): string | undefined =>
    response.getElementsByTagNameNS('DAV:', name)[0]?.textContent || undefined;
  const href = (text('href') ?? '').replace(/\/$/, '');
  const name = decodeName(nameOf(href));
  const isFolder = response.getElementsByTagNameNS('DAV:', 'collection').length > 0;
  const [size, modified, etag] = [text('getcontentlength'), text('getlastmodified'), text('getetag')];
  return {
    kind: isFolder ? 'folder' : 'file',
    path: join(folder, name),
    name,
    ...(!isFolder && size !== undefined && { sizeBytes: Number(size) }),
    ...(modified !== undefined && { modifiedMs: Date.parse(modified) }),
    ...(!isFolder && etag !== undefined && { etag }),
  };
}
