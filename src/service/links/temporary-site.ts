import type { Answer, Exchange } from '../../http/exchange.ts';
import { json, text } from '../api/answers.ts';
import { uploadBody } from '../api/argument.ts';
import { commitOf } from '../api/commit.ts';
import { BadCall } from '../api/failures.ts';
import type { ServiceDeps } from '../deps.ts';
import { StorageError } from '../storage/storage.ts';
import { linkBytes } from './bytes.ts';
import type { TemporaryTarget } from './temporary-links.ts';

/** Answers the URLs of temporary links. */
export type TemporarySite = (exchange: Exchange) => Promise<Answer>;

type Target<Kind extends TemporaryTarget['kind']> = Extract<TemporaryTarget, { readonly kind: Kind }>;

/** Paths like the real service's. */
const DOWNLOAD = { prefix: '/cd/0/get/', suffix: '/file' };
const UPLOAD_PREFIX = '/apitul/1/';

/** Returns the URL from which a file's bytes can be fetched without a token. */
export function downloadUrl(contentUrl: string, secret: string): string {
  return `${contentUrl}${DOWNLOAD.prefix}${secret}${DOWNLOAD.suffix}`;
}

/** Returns the URL to which a file's bytes can be sent without a token. */
export function uploadUrl(contentUrl: string, secret: string): string {
  return `${contentUrl}${UPLOAD_PREFIX}${secret}`;
}

export function isTemporaryPath(path: string): boolean {
  return path.startsWith(DOWNLOAD.prefix) || path.startsWith(UPLOAD_PREFIX);
}

export function temporarySiteOf(deps: ServiceDeps): TemporarySite {
  /** Upload links in use. */
  const busy = new Set<string>();
  return async (exchange) => {
    const isUpload = exchange.path.startsWith(UPLOAD_PREFIX);
    const allowed = isUpload ? ['POST'] : ['GET', 'HEAD'];
    if (!allowed.includes(exchange.request.method ?? ''))
      return text(405, `This link is for ${allowed.join(' and ')}.`, { allow: allowed.join(', ') });
    const secret = secretIn(exchange.path);
    const target = deps.temporaryLinks.find(secret, deps.clock.now());
    if (target === 'over') return text(410, 'This link has expired, or was used already. Ask for a new one.');
    if (target?.kind === 'download' && !isUpload) return await download(exchange, deps, target);
    if (target?.kind !== 'upload' || !isUpload) return text(isUpload ? 409 : 404, 'There is no such link.');
    if (busy.has(secret))
      return text(409, 'Another upload is using this link, which is for one upload only.');
    busy.add(secret);
    try {
      return await upload(exchange, deps, secret, target);
    } finally {
      busy.delete(secret);
    }
  };
}

function secretIn(path: string): string {
  if (path.startsWith(UPLOAD_PREFIX)) return path.slice(UPLOAD_PREFIX.length);
  return path.endsWith(DOWNLOAD.suffix) ? path.slice(DOWNLOAD.prefix.length, -DOWNLOAD.suffix.length) : '';
}

async function download(exchange: Exchange, deps: ServiceDeps, target: Target<'download'>): Promise<Answer> {
  const { namespace } = deps.accountWithId(target.accountId);
  try {
    const file = deps.storage.stat(namespace, `rev:${target.rev}`, false);
    if (file.kind === 'file') return await linkBytes(exchange.request.headers, deps, file, 'typed');
  } catch (error) {
    if (!(error instanceof StorageError)) throw error;
  }
  return text(404, 'The file was permanently deleted.');
}

const UPLOAD_TYPES = /^(application\/octet-stream|text\/plain)\b/i;

/** Commits a body as the link's creator asked. A failed upload does not use up the link. */
async function upload(
  exchange: Exchange,
  { storage, temporaryLinks, accountWithId }: ServiceDeps,
  secret: string,
  target: Target<'upload'>,
): Promise<Answer> {
  if (!UPLOAD_TYPES.test(exchange.request.headers['content-type'] ?? ''))
    return text(400, 'Content-Type must be application/octet-stream.');
  const { namespace = accountWithId(target.accountId).namespace } = target;
  try {
    const commit = commitOf(target.commit, namespace);
    const file = await storage.upload(namespace, commit, uploadBody(exchange, undefined), {
      refusedBytes: 'dropped',
    });
    temporaryLinks.markUsed(secret);
    return json(200, { 'content-hash': file.contentHash });
  } catch (error) {
    if (error instanceof BadCall) return text(400, error.message);
    if (error instanceof StorageError) return text(409, `The upload failed: ${error.refusal.tag}.`);
    throw error;
  }
}
