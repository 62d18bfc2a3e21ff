import type { Answer, Exchange } from '../../http/exchange.ts';
import { json, text } from '../api/answers.ts';
import { uploadBody } from '../api/argument.ts';
import { commitOf } from '../api/commit.ts';
import { BadCall } from '../api/failures.ts';
import type { ServiceDeps } from '../deps.ts';
import { StorageError } from '../storage/storage.ts';
import { linkBytes } from './bytes.ts';
import { ownerOf } from './sharing.ts';
import type { DownloadTarget, UploadTarget } from './temporary-links.ts';

/** Answers the URLs of temporary links. */
export type TemporarySite = (exchange: Exchange) => Promise<Answer>;

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
  return async (exchange) => {
    const isUpload = exchange.path.startsWith(UPLOAD_PREFIX);
    const allowed = isUpload ? ['POST'] : ['GET', 'HEAD'];
    if (!allowed.includes(exchange.request.method ?? ''))
      return text(405, `This link is for ${allowed.join(' and ')}.`, { allow: allowed.join(', ') });
    const secret = secretIn(exchange.path);
    return await (isUpload ? answerUpload : answerDownload)(exchange, deps, secret);
  };
}

const OVER = text(410, 'This link has expired, or was used already. Ask for a new one.');
const CLAIMED = text(409, 'This link is for one upload only, and that has begun. Ask for a new one.');

async function answerDownload(exchange: Exchange, deps: ServiceDeps, secret: string): Promise<Answer> {
  const target = await deps.temporaryLinks.download(secret, deps.clock.now());
  if (target === 'over') return OVER;
  return target ? await download(exchange, deps, target) : text(404, NO_LINK);
}

async function answerUpload(exchange: Exchange, deps: ServiceDeps, secret: string): Promise<Answer> {
  if (!UPLOAD_TYPES.test(exchange.request.headers['content-type'] ?? ''))
    return text(400, 'Content-Type must be application/octet-stream.');
  const { temporaryLinks, clock } = deps;
  const target = await temporaryLinks.claimUpload(secret, clock.now());
  if (target === 'over') return OVER;
  if (target === 'claimed') return CLAIMED;
  if (!target) return text(409, NO_LINK);
  let isCommitting = false;
  const committing = () => {
    isCommitting = true;
  };
  try {
    const answer = await upload(exchange, deps, target, committing);
    await (answer.status === 200 ? temporaryLinks.markUsed(secret) : temporaryLinks.release(secret));
    return answer;
  } catch (error) {
    // Once the commit has begun, the file may be stored, as when the answer to a COMMIT is lost: the link stays claimed.
    if (!isCommitting) await temporaryLinks.release(secret);
    throw error;
  }
}

const NO_LINK = 'There is no such link.';

function secretIn(path: string): string {
  if (path.startsWith(UPLOAD_PREFIX)) return path.slice(UPLOAD_PREFIX.length);
  return path.endsWith(DOWNLOAD.suffix) ? path.slice(DOWNLOAD.prefix.length, -DOWNLOAD.suffix.length) : '';
}

async function download(exchange: Exchange, deps: ServiceDeps, target: DownloadTarget): Promise<Answer> {
  const { namespace } = (await ownerOf(deps, target)) ?? {};
  if (namespace === undefined) return text(404, NO_LINK);
  try {
    const file = await deps.storage.stat(namespace, `rev:${target.rev}`, false);
    if (file.kind === 'file') return await linkBytes(exchange.request, deps, { namespace, file }, 'typed');
  } catch (error) {
    if (!(error instanceof StorageError)) throw error;
  }
  return text(404, 'The file was permanently deleted.');
}

const UPLOAD_TYPES = /^(application\/octet-stream|text\/plain)\b/i;

/** Commits a body as the link's creator asked. Answers 200 if and only if the file is stored. */
async function upload(
  exchange: Exchange,
  deps: ServiceDeps,
  target: UploadTarget,
  committing: () => void,
): Promise<Answer> {
  const namespace = target.namespace ?? (await ownerOf(deps, target))?.namespace;
  if (namespace === undefined) return text(409, NO_LINK);
  try {
    const commit = commitOf(target.commit, namespace);
    const file = await deps.storage.upload(namespace, commit, uploadBody(exchange, undefined), {
      refusedBytes: 'dropped',
      committing,
    });
    return json(200, { 'content-hash': file.contentHash });
  } catch (error) {
    if (error instanceof BadCall) return text(400, error.message);
    if (error instanceof StorageError) return text(409, `The upload failed: ${error.refusal.tag}.`);
    throw error;
  }
}
