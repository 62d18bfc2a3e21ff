import { once } from 'node:events';
import { STATUS_CODES } from 'node:http';
import type { Exchange } from '../exchange.ts';
import { escapeText } from '../xml/xml-writer.ts';

export const XML_TYPE = 'application/xml; charset="utf-8"';
export const XML_DECLARATION = '<?xml version="1.0" encoding="utf-8"?>\n';

const HEAD = `${XML_DECLARATION}<D:multistatus xmlns:D="DAV:">`;
const TAIL = '</D:multistatus>';

/** Size of the pieces of a streamed answer, in characters. */
const PIECE_LENGTH = 64 * 1024;

/** Returns `HTTP/1.1 200 OK`: always 1.1, whatever the connection's version, because Kodi compares the text. */
export function statusLine(status: number): string {
  return `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`.trimEnd();
}

/** Renders a `DAV:propstat`. `props` is XML; `precondition` is the local name of a `DAV:` element (RFC 4918 §16). */
export function propstatXml(status: number, props: string, reason?: string, precondition?: string): string {
  const error = precondition ? `<D:error><D:${precondition}/></D:error>` : '';
  const description = reason ? `<D:responsedescription>${escapeText(reason)}</D:responsedescription>` : '';
  const prop = props === '' ? '<D:prop/>' : `<D:prop>${props}</D:prop>`;
  return `<D:propstat>${prop}<D:status>${statusLine(status)}</D:status>${error}${description}</D:propstat>`;
}

/** Renders a `DAV:response`: one row. `href` is percent-encoded and not yet escaped for XML. */
export function responseXml(href: string, propstats: string): string {
  return responseStart(href) + responseEnd(propstats);
}

export function responseStart(href: string): string {
  return `<D:response><D:href>${escapeText(href)}`;
}

export function responseEnd(propstats: string): string {
  return `</D:href>${propstats}</D:response>`;
}

/** Answers 207 with a few rows. */
export function answerMultistatus(
  exchange: Pick<Exchange, 'answer'>,
  rows: readonly string[],
): Promise<void> {
  return answerBody(exchange, Buffer.from(HEAD + rows.join('') + TAIL));
}

function answerBody(exchange: Pick<Exchange, 'answer'>, body: Buffer): Promise<void> {
  return exchange.answer({ status: 207, headers: { 'Content-Type': XML_TYPE }, body });
}

/**
 * Answers 207 with rows that arrive in groups. Sends up to `wholeLength` characters at once, with a Content-Length, and
 * returns the body; streams more, at the client's pace. When a group throws, the answer is not begun, or incomplete.
 */
export async function sendMultistatus(
  exchange: Pick<Exchange, 'answer' | 'response' | 'signal'>,
  groups: Iterable<Iterable<string>> | AsyncIterable<Iterable<string>>,
  { wholeLength }: { readonly wholeLength: number },
): Promise<Buffer | undefined> {
  const { response } = exchange;
  let text = HEAD;
  for await (const rows of groups) {
    for (const row of rows) {
      text += row;
      if (text.length < (response.headersSent ? PIECE_LENGTH : wholeLength)) continue;
      await writePiece(exchange, text);
      text = '';
    }
  }
  text += TAIL;
  if (response.headersSent) {
    response.end(text);
    return undefined;
  }
  const body = Buffer.from(text);
  await answerBody(exchange, body);
  return body;
}

async function writePiece(
  { response, signal }: Pick<Exchange, 'response' | 'signal'>,
  text: string,
): Promise<void> {
  signal.throwIfAborted();
  if (!response.headersSent) response.writeHead(207, { 'Content-Type': XML_TYPE });
  if (!response.write(text)) await once(response, 'drain', { signal });
}
