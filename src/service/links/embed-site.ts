import type { Answer, Exchange } from '../../http/exchange.ts';
import { text } from '../api/answers.ts';
import type { ServiceDeps } from '../deps.ts';
import { StorageError } from '../storage/storage.ts';
import { filePageOf, folderPageOf, framePageUrl, linkPageUrl, viewOptions } from './pages.ts';
import { itemBelow, openLink } from './sharing.ts';
import { linkAddressIn, rootFrom } from './url.ts';
import { EMBED_SCRIPT } from './web/embed-script.ts';
import { filePage, folderPage, lockedFrame, messagePage } from './web/pages.ts';
import { FRAME_POLICY } from './web/shell.ts';

const SCRIPT_PATH = '/embed.js';
const FRAME_PATH = '/embed';

/** Whether a path belongs to the embeddable preview component. */
export function isEmbedPath(path: string): boolean {
  return path === SCRIPT_PATH || path === FRAME_PATH;
}

/** Answers with the script that other sites' pages include, and with the pages in its frames. */
export async function answerEmbed(exchange: Exchange, deps: ServiceDeps): Promise<Answer> {
  const { method } = exchange.request;
  if (method !== 'GET' && method !== 'HEAD')
    return text(405, 'Request previews with GET.', { allow: 'GET, HEAD' });
  if (exchange.path === SCRIPT_PATH) return SCRIPT_ANSWER;
  try {
    return await frameAnswer(exchange, deps);
  } catch (error) {
    // The item may disappear between the lookup and the read.
    if (error instanceof StorageError && error.refusal.kind === 'lookup') return NOT_FOUND;
    throw error;
  }
}

/** For pages of any origin, also those with a cross-origin embedder policy. */
const SCRIPT_ANSWER: Answer = {
  status: 200,
  headers: {
    'content-type': 'text/javascript; charset=utf-8',
    'cache-control': 'public, max-age=3600',
    'access-control-allow-origin': '*',
    'cross-origin-resource-policy': 'cross-origin',
  },
  body: EMBED_SCRIPT,
};

const NOT_FOUND = frame(
  404,
  messagePage(
    'Nothing is here',
    'The link is wrong, its owner has revoked it, or the file or folder was deleted.',
    'frame',
  ),
);
const EXPIRED = frame(410, messagePage('This link has expired', 'Ask for a new one.', 'frame'));
const CLOSED = frame(
  403,
  messagePage('This link is closed', 'Its owner has closed it to everybody.', 'frame'),
);

async function frameAnswer(exchange: Exchange, deps: ServiceDeps): Promise<Answer> {
  const { query, signal } = exchange;
  const address = linkAddressIn(query.get('link') ?? '');
  const linked = address ? await openLink(deps, address) : 'not-found';
  if (linked === 'expired') return EXPIRED;
  if (linked === 'not-found' || !address) return NOT_FOUND;
  if (linked.link.visibility === 'no_one') return CLOSED;
  const options = viewOptions(query);
  const base = rootFrom(exchange);
  if (linked.link.passwordHash)
    return frame(403, lockedFrame(linkPageUrl(linked, base)(address.below, options.view)));
  const opened = await itemBelow(deps, linked, address.below);
  if (!opened) return NOT_FOUND;
  const pageUrl = framePageUrl(opened, options, { base, webUrl: deps.webUrl() });
  const look = { opened, address, options, pageUrl, base, place: 'frame' } as const;
  const { item } = opened;
  return item.kind === 'folder'
    ? frame(200, folderPage(await folderPageOf(deps, look, item)))
    : frame(200, filePage(await filePageOf(deps, look, item, signal)));
}

function frame(status: number, body: string): Answer {
  return {
    status,
    headers: {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': FRAME_POLICY,
      'cache-control': 'no-store',
      'cross-origin-resource-policy': 'cross-origin',
      'referrer-policy': 'no-referrer',
      'x-robots-tag': 'noindex',
    },
    body,
  };
}
