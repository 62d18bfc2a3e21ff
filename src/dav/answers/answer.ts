import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { Clock } from '../../util/clock.ts';
import { endBeforeBody, isBodySmall } from '../../util/unread-body.ts';
import type { RequestBody } from '../body.ts';
import type { DavError } from '../errors.ts';
import { DAVGATE_NAMESPACE } from '../properties/names.ts';
import { escapeText } from '../xml/write.ts';

export const XML_TYPE = 'application/xml; charset="utf-8"';

/** An answer without content. */
export function answerEmpty(
  response: ServerResponse,
  status: number,
  headers: OutgoingHttpHeaders = {},
): void {
  const length = status === 204 || status === 304 ? {} : { 'Content-Length': 0 };
  response.writeHead(status, { ...headers, ...length });
  response.end();
}

export function answerXml(
  response: ServerResponse,
  status: number,
  xml: string,
  headers: OutgoingHttpHeaders = {},
): void {
  const body = Buffer.from(`<?xml version="1.0" encoding="utf-8"?>\n${xml}`);
  response.writeHead(status, { ...headers, 'Content-Type': XML_TYPE, 'Content-Length': body.length });
  response.end(body);
}

/**
 * Says no: as `DAV:error` where RFC 4918 names the condition (§16), else as a sentence. What the client still
 * sends of its body is taken care of, so that it can read the answer.
 */
export async function answerRefusal(
  { request, response, body, clock }: Exchange,
  refusal: DavError,
): Promise<void> {
  const { type, text } = contentOf(refusal);
  const content = Buffer.from(text);
  const isBodyHeldBack = body.awaitsLeave;
  if (!request.complete && (isBodyHeldBack || !isBodySmall(request))) response.shouldKeepAlive = false;
  response.writeHead(refusal.status, {
    ...refusal.headers,
    'Content-Type': type,
    'Content-Length': content.length,
  });
  if (request.method === 'HEAD') response.flushHeaders();
  else response.write(content);
  await endBeforeBody(request, response, clock, isBodyHeldBack);
}

interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly body: RequestBody;
  readonly clock: Clock;
}

function contentOf({ message, precondition, hrefs }: DavError): {
  readonly type: string;
  readonly text: string;
} {
  if (precondition === undefined) return { type: 'text/plain; charset=utf-8', text: `${message}\n` };
  const inner = hrefs.map((href) => `<D:href>${escapeText(href)}</D:href>`).join('');
  const condition = inner === '' ? `<D:${precondition}/>` : `<D:${precondition}>${inner}</D:${precondition}>`;
  const reason = `<message xmlns="${DAVGATE_NAMESPACE}">${escapeText(message)}</message>`;
  return {
    type: XML_TYPE,
    text: `<?xml version="1.0" encoding="utf-8"?>\n<D:error xmlns:D="DAV:">${condition}${reason}</D:error>`,
  };
}
