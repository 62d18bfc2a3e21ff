import type { Answer } from '../../http/exchange.ts';
import { fileNameOf } from '../../util/content-disposition.ts';
import type { HttpRequest } from '../../util/http-messages.ts';
import { type ReadableFile, withFirstChunk } from '../content/file-content.ts';
import { namesRev, singleRange } from '../content/requested-part.ts';
import type { ServiceDeps } from '../deps.ts';
import { inlineType, realType } from './content-type.ts';

/**
 * Returns the bytes of a shared file, all or a range: to save (`attachment`), to show (`inline`), or with the file's
 * own media type, which a browser saves (`typed`). The content is untrusted, so the browser must run nothing of it and
 * not guess another type.
 */
export async function linkBytes(
  { method, headers: asked }: Pick<HttpRequest, 'method' | 'headers'>,
  { storage }: ServiceDeps,
  { namespace, file }: ReadableFile,
  as: 'attachment' | 'inline' | 'typed',
): Promise<Answer> {
  const type = typeFor(as, file.name);
  const disposition = as === 'inline' ? 'inline' : 'attachment';
  const etag = `"${file.rev}"`;
  const headers = {
    'content-type': type,
    'content-disposition': `${disposition}; ${fileNameOf(file.name)}`,
    'content-security-policy': policyOf(type),
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
    'x-robots-tag': 'noindex',
    'cache-control': 'private, no-cache',
    'accept-ranges': 'bytes',
    etag,
    'last-modified': new Date(file.serverModifiedMs).toUTCString(),
  };
  if (namesRev(asked['if-none-match'], file.rev)) return { status: 304, headers, body: undefined };
  const mayRange = asked['if-range'] === undefined || asked['if-range'] === etag;
  const range = mayRange ? singleRange(asked.range, file.sizeBytes) : undefined;
  if (range === 'unsatisfiable')
    return { status: 416, headers: { ...headers, 'content-range': `bytes */${file.sizeBytes}` }, body: '' };
  const content = storage.read(namespace, file, range, { lent: true });
  const bytes = method === 'HEAD' ? content : await withFirstChunk(content);
  if (!range) return { status: 200, headers, body: { sizeBytes: file.sizeBytes, bytes } };
  return {
    status: 206,
    headers: { ...headers, 'content-range': `bytes ${range.start}-${range.end - 1}/${file.sizeBytes}` },
    body: { sizeBytes: range.end - range.start, bytes },
  };
}

function typeFor(as: 'attachment' | 'inline' | 'typed', name: string): string {
  if (as === 'attachment') return 'application/octet-stream';
  return as === 'inline' ? inlineType(name) : realType(name);
}

/**
 * Returns the Content-Security-Policy of a type. `sandbox` gives the document an origin of its own and no scripts.
 * Browsers do not show PDFs in a sandbox, and their viewers run no scripts of ours, so PDFs have none.
 */
function policyOf(type: string): string {
  const rules = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; media-src 'self'";
  return type === 'application/pdf' ? "default-src 'none'; object-src 'self'" : `sandbox; ${rules}`;
}
