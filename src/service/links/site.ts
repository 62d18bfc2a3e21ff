import type { Answer } from '../../http/answer.ts';
import type { Exchange } from '../../http/exchange.ts';
import { secondsOf, waitInWords } from '../accounts/guess-limits.ts';
import { folderZip } from '../content/folder-zip.ts';
import { ZIP_TYPE } from '../content/zip.ts';
import { cookiesNamed, setCookie } from '../cookies.ts';
import { formOf } from '../form.ts';
import type { Rooms } from '../route.ts';
import { StorageError, type StoredFolder } from '../storage/storage.ts';
import { fileNameOf, linkBytes } from './bytes.ts';
import { linkThumbnail } from './link-thumbnail.ts';
import type { Link } from './links.ts';
import { filePageOf, folderPageOf, linkPageUrl, viewOptions } from './pages.ts';
import type { LinkPasswords } from './password.ts';
import { type OpenLink, openLink } from './sharing.ts';
import { type LinkAddress, parseLinkAddress, webPath } from './url.ts';
import { filePage, folderPage, messagePage, passwordPage } from './web/pages.ts';
import { LINK_PAGE_POLICY } from './web/shell.ts';

/** A form with one password; more is no such form. */
const FORM_MAX_BYTES = 16 * 1024;

/** Answers the address of a shared link: a page with `dl=0`, the bytes with `dl=1` and `raw=1`. */
export async function answerLink(exchange: Exchange, rooms: Rooms): Promise<Answer> {
  try {
    return await answerOpen(exchange, rooms);
  } catch (error) {
    // What was there when the link was looked up may be gone when it is read.
    if (error instanceof StorageError && error.refusal.kind === 'lookup') return page(404, NOT_FOUND);
    throw error;
  }
}

async function answerOpen(exchange: Exchange, rooms: Rooms): Promise<Answer> {
  const address = parseLinkAddress(exchange.path, exchange.query);
  const opened = address ? openLink(rooms, address) : 'not-found';
  if (opened === 'expired') return page(410, messagePage('This link has expired', 'Ask for a new one.'));
  if (opened === 'not-found' || !address) return page(404, NOT_FOUND);
  if (opened.link.visibility === 'no_one')
    return page(403, messagePage('This link is closed', 'Its owner lets no one in.'));
  const { method } = exchange.request;
  if (opened.link.passwordHash && !hasPass(exchange, opened.link, rooms.linkPasswords))
    return method === 'POST' ? await tryPassword(exchange, opened.link, rooms) : page(403, passwordPage());
  if (method === 'POST') return seeOther(exchange);
  if (method !== 'GET' && method !== 'HEAD')
    return page(405, messagePage('Not like this', 'Links are opened with GET.'), {
      allow: 'GET, HEAD, POST',
    });
  return await show(exchange, rooms, address, opened);
}

const NOT_FOUND = messagePage(
  'Nothing is here',
  'The link is wrong, was taken back by its owner, or what it led to was deleted.',
);

async function show(
  exchange: Exchange,
  rooms: Rooms,
  address: LinkAddress,
  opened: OpenLink,
): Promise<Answer> {
  const { link, item } = opened;
  const wantsDownload = exchange.query.get('dl') === '1';
  const wantsBytes = wantsDownload || exchange.query.get('raw') === '1';
  const base = webPath(rooms.webUrl());
  const look = {
    opened,
    address,
    options: viewOptions(exchange.query),
    pageUrl: linkPageUrl(opened, base),
    base,
    place: 'page',
  } as const;
  if (item.kind === 'folder') {
    if (!wantsBytes) return page(200, folderPage(folderPageOf(rooms, look, item)));
    if (!wantsDownload)
      return page(400, messagePage('A folder is not one file', 'Open the link with dl=0 and choose a file.'));
    return link.allowDownload ? zipAnswer(rooms, opened, item) : page(403, NO_DOWNLOADS);
  }
  if (exchange.query.get('thumb') === '1') return linkThumbnail(exchange, rooms, item);
  if (!wantsBytes) return page(200, filePage(await filePageOf(rooms, look, item, exchange.signal)));
  if (wantsDownload && !link.allowDownload) return page(403, NO_DOWNLOADS);
  return linkBytes(exchange.request.headers, rooms, item, wantsDownload ? 'attachment' : 'inline');
}

const NO_DOWNLOADS = messagePage('No downloads', 'The owner of this link does not allow them.');

/** The folder and all below it. */
function zipAnswer({ storage, clock }: Rooms, { account }: OpenLink, folder: StoredFolder): Answer {
  const zip = folderZip(storage, account.namespace, folder, clock.now());
  if (typeof zip === 'string') {
    const what = zip === 'too_large' ? 'too many bytes' : 'too many files';
    return page(400, messagePage('Too much at once', `This folder has ${what}: choose one inside it.`));
  }
  const headers = {
    'content-type': ZIP_TYPE,
    'content-disposition': `attachment; ${fileNameOf(`${folder.name}.zip`)}`,
    'content-security-policy': 'sandbox',
    'referrer-policy': 'no-referrer',
    'x-robots-tag': 'noindex',
    'cache-control': 'private, no-cache',
  };
  return { status: 200, headers, body: zip };
}

function hasPass(exchange: Exchange, link: Link, passwords: LinkPasswords): boolean {
  return cookiesNamed(exchange, cookieName(link)).some((pass) => passwords.isPass(link, pass));
}

async function tryPassword(exchange: Exchange, link: Link, rooms: Rooms): Promise<Answer> {
  const { linkPasswords: passwords } = rooms;
  const form = await formOf(exchange, FORM_MAX_BYTES);
  const password = form?.get('password');
  if (!password) return page(400, passwordPage('Type the password.'));
  const verdict = await passwords.check(link, password, exchange.address);
  if (typeof verdict === 'object')
    return page(429, passwordPage(`Too many wrong passwords. Try again in ${waitInWords(verdict)}.`), {
      'retry-after': String(secondsOf(verdict)),
    });
  if (verdict === 'wrong') return page(403, passwordPage('That is not the password.'));
  const pass = {
    name: cookieName(link),
    value: passwords.pass(link),
    path: `${webPath(rooms.webUrl())}/scl/`,
  };
  return seeOther(exchange, setCookie(rooms, pass));
}

function cookieName(link: Link): string {
  return `link-${link.token}`;
}

/** Back to the same address, to be asked for with GET. */
function seeOther(exchange: Exchange, headers: Readonly<Record<string, string>> = {}): Answer {
  // Relative: a proxy may serve the service under another path.
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
      // The address is the key: it is not to be told to wherever the page leads.
      'referrer-policy': 'no-referrer',
      'x-robots-tag': 'noindex',
      ...headers,
    },
    body,
  };
}
