import type { Answer, Exchange } from '../../http/exchange.ts';
import { fileNameOf } from '../../util/content-disposition.ts';
import { ZIP_TYPE } from '../../util/zip.ts';
import { secondsOf, waitInWords } from '../accounts/guess-limits.ts';
import { text } from '../api/answers.ts';
import { cookiesNamed, formOf, setCookie } from '../api/forms.ts';
import type { ReadableFile } from '../content/file-content.ts';
import { folderZip } from '../content/folder-zip.ts';
import { namesRev } from '../content/requested-part.ts';
import type { ServiceDeps } from '../deps.ts';
import { StorageError } from '../storage/storage.ts';
import { thumbnailOf } from '../thumbnails/thumbnail.ts';
import { linkBytes } from './bytes.ts';
import type { Link } from './links.ts';
import { filePageOf, folderPageOf, linkPageUrl, viewOptions } from './pages.ts';
import type { LinkPasswords } from './password.ts';
import { itemBelow, type OpenLink, openLink } from './sharing.ts';
import { type LinkAddress, parseLinkAddress, rootFrom, webPath } from './url.ts';
import { filePage, folderPage, messagePage, passwordPage } from './web/pages.ts';
import { LINK_PAGE_POLICY } from './web/shell.ts';

/** Maximum size of a form with one password, in bytes. */
const FORM_BYTES_MAX = 16 * 1024;

/** Answers a shared link's URL: a page with `dl=0`, the bytes with `dl=1` and `raw=1`. */
export async function answerLink(exchange: Exchange, deps: ServiceDeps): Promise<Answer> {
  try {
    return await answerOpen(exchange, deps);
  } catch (error) {
    // The item may disappear between the lookup and the read.
    if (error instanceof StorageError && error.refusal.kind === 'lookup') return page(404, NOT_FOUND);
    throw error;
  }
}

async function answerOpen(exchange: Exchange, deps: ServiceDeps): Promise<Answer> {
  const address = parseLinkAddress(exchange.path, exchange.query);
  const linked = address ? await openLink(deps, address) : 'not-found';
  if (linked === 'expired') return page(410, messagePage('This link has expired', 'Ask for a new one.'));
  if (linked === 'not-found' || !address) return page(404, NOT_FOUND);
  const { link } = linked;
  if (link.visibility === 'no_one')
    return page(403, messagePage('This link is closed', 'Its owner has closed it to everybody.'));
  const { method } = exchange.request;
  if (link.passwordHash && !hasPass(exchange, link, deps.linkPasswords))
    return method === 'POST' ? await tryPassword(exchange, link, deps) : page(403, passwordPage());
  const opened = await itemBelow(deps, linked, address.below);
  if (!opened) return page(404, NOT_FOUND);
  if (method === 'POST') return seeOther(exchange);
  if (method !== 'GET' && method !== 'HEAD')
    return page(405, messagePage('Not like this', 'Open links with GET.'), {
      allow: 'GET, HEAD, POST',
    });
  return await show(exchange, deps, address, opened);
}

const NOT_FOUND = messagePage(
  'Nothing is here',
  'The link is wrong, its owner has revoked it, or the file or folder was deleted.',
);

async function show(
  exchange: Exchange,
  deps: ServiceDeps,
  address: LinkAddress,
  opened: OpenLink,
): Promise<Answer> {
  const { link, item } = opened;
  const wantsDownload = exchange.query.get('dl') === '1';
  const wantsBytes = wantsDownload || exchange.query.get('raw') === '1';
  const base = rootFrom(exchange);
  const look = {
    opened,
    address,
    options: viewOptions(exchange.query),
    pageUrl: linkPageUrl(opened, base),
    base,
    place: 'page',
  } as const;
  if (item.kind === 'folder') {
    if (!wantsBytes) return page(200, folderPage(await folderPageOf(deps, look, item)));
    if (!wantsDownload)
      return page(400, messagePage('A folder is not one file', 'Open the link with dl=0 and choose a file.'));
    return link.allowDownload ? await zipAnswer(deps, opened) : page(403, NO_DOWNLOADS);
  }
  const shared = { namespace: opened.account.namespace, file: item };
  if (exchange.query.get('thumb') === '1') return await linkThumbnail(exchange, deps, shared, link);
  if (!wantsBytes) return page(200, filePage(await filePageOf(deps, look, item, exchange.signal)));
  if (wantsDownload && !link.allowDownload) return page(403, NO_DOWNLOADS);
  const as = wantsDownload ? 'attachment' : 'inline';
  return await linkBytes(exchange.request, deps, shared, as);
}

const NO_DOWNLOADS = messagePage('No downloads', 'The owner of this link does not allow them.');

/** Returns an archive of the folder and everything below it. */
async function zipAnswer({ storage, clock }: ServiceDeps, { account, item }: OpenLink): Promise<Answer> {
  const zip = await folderZip(storage, account.namespace, item.id, clock.now());
  if (typeof zip === 'string') {
    const what = zip === 'too_large' ? 'too many bytes' : 'too many files';
    return page(400, messagePage('Too much at once', `This folder has ${what}: choose one inside it.`));
  }
  const headers = {
    'content-type': ZIP_TYPE,
    'content-disposition': `attachment; ${fileNameOf(`${zip.folder.name}.zip`)}`,
    'content-security-policy': 'sandbox',
    'referrer-policy': 'no-referrer',
    'x-robots-tag': 'noindex',
    'cache-control': 'private, no-cache',
  };
  return { status: 200, headers, body: { sizeBytes: zip.sizeBytes, bytes: zip.bytes } };
}

function hasPass(exchange: Exchange, link: Link, passwords: LinkPasswords): boolean {
  return cookiesNamed(exchange, cookieName(link)).some((pass) => passwords.isPass(link, pass));
}

async function tryPassword(exchange: Exchange, link: Link, deps: ServiceDeps): Promise<Answer> {
  const { linkPasswords: passwords } = deps;
  const form = await formOf(exchange, FORM_BYTES_MAX);
  const password = form?.get('password');
  if (!password) return page(400, passwordPage('Type the password.'));
  const outcome = await passwords.check(link, password, exchange.address);
  if (typeof outcome === 'object')
    return page(429, passwordPage(`Too many wrong passwords. Try again in ${waitInWords(outcome)}.`), {
      'retry-after': String(secondsOf(outcome)),
    });
  if (outcome === 'wrong') return page(403, passwordPage('Wrong password.'));
  const pass = {
    name: cookieName(link),
    value: passwords.pass(link),
    path: `${webPath(exchange, deps.webUrl())}/scl/`,
  };
  return seeOther(exchange, setCookie(exchange, deps, pass));
}

function cookieName(link: Link): string {
  return `link-${link.token}`;
}

/** Redirects to the same URL with GET. */
function seeOther(exchange: Exchange, headers: Readonly<Record<string, string>> = {}): Answer {
  // Relative, because a proxy may serve the service under another path.
  const location = `?${exchange.query}`;
  return { status: 303, headers: { ...headers, location, 'cache-control': 'no-store' }, body: '' };
}

function page(status: number, body: string, headers: Readonly<Record<string, string>> = {}): Answer {
  return {
    status,
    headers: {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': LINK_PAGE_POLICY,
      'cache-control': 'no-store',
      // The URL is the key: it must not be sent to the sites that the page links to.
      'referrer-policy': 'no-referrer',
      'x-robots-tag': 'noindex',
      ...headers,
    },
    body,
  };
}

/** `Retry-After` while too many images are being rendered, in seconds. */
const RETRY_SECONDS = 5;

/** Size of thumbnails: twice the largest display size, for high-density screens. */
const WANTED = { format: 'webp', mode: 'strict', box: { width: 320, height: 240 } } as const;

/** Returns the thumbnail of a linked file on a folder's page; 404 for a file that is not an image. */
async function linkThumbnail(
  { request, signal }: Exchange,
  deps: ServiceDeps,
  shared: ReadableFile,
  link: Link,
): Promise<Answer> {
  const { file } = shared;
  const etag = `"${file.rev}"`;
  const headers = { 'cache-control': 'private, no-cache', 'referrer-policy': 'no-referrer', etag };
  if (namesRev(request.headers['if-none-match'], file.rev)) return { status: 304, headers, body: undefined };
  // A page requests all its images at once, and does not ask again for one that is refused.
  const made = await thumbnailOf(deps, shared, WANTED, { signal, line: link.token });
  if (made === 'busy')
    return text(503, 'No thumbnail can be made now: try again in a few seconds.', {
      'retry-after': String(RETRY_SECONDS),
    });
  if (typeof made === 'string') return text(404, `There is no thumbnail of this file: ${made}.`);
  return {
    status: 200,
    headers: {
      ...headers,
      'content-type': 'image/webp',
      'content-security-policy': "sandbox; default-src 'none'",
      'cross-origin-resource-policy': 'cross-origin',
    },
    body: { sizeBytes: made.length, bytes: bytesOf(made) },
  };
}

async function* bytesOf(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}
