import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { DavError } from '../errors.ts';
import type { Exchange } from '../exchange.ts';
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

/** Refuses: as `DAV:error` where RFC 4918 names the condition (§16), else with a sentence. */
export async function answerRefusal(exchange: Pick<Exchange, 'answer'>, refusal: DavError): Promise<void> {
  const { status, headers } = refusal;
  const { type, text } = contentOf(refusal);
  await exchange.answer({ status, headers: { ...headers, 'Content-Type': type }, body: text });
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
