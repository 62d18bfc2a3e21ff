import { STATUS_CODES } from 'node:http';
import { setImmediate as otherTasks } from 'node:timers/promises';
import type { Exchange } from '../exchange.ts';
import { escapeText } from '../xml/xml-writer.ts';

export const XML_TYPE = 'application/xml; charset="utf-8"';
export const XML_DECLARATION = '<?xml version="1.0" encoding="utf-8"?>\n';

const HEAD = `${XML_DECLARATION}<D:multistatus xmlns:D="DAV:">`;
const TAIL = '</D:multistatus>';

/** Length from which on pieces of a long answer are not joined any more, in bytes. */
const JOINED_LENGTH = 64 * 1024;

const HEAD_BYTES = Buffer.from(HEAD);
const TAIL_BYTES = Buffer.from(TAIL);

/** Returns `HTTP/1.1 200 OK`: always 1.1, whatever the connection's version, because Kodi compares the text. */
export function statusLine(status: number): string {
  return `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`.trimEnd();
}

/** The end of the `propstat` that nearly each row has. */
const OK_END = `<D:status>${statusLine(200)}</D:status></D:propstat>`;

/** Renders a `DAV:propstat`. `props` is XML; `precondition` is the local name of a `DAV:` element (RFC 4918 §16). */
export function propstatXml(status: number, props: string, reason?: string, precondition?: string): string {
  if (status === 200 && props !== '' && !reason && !precondition)
    return `<D:propstat><D:prop>${props}</D:prop>${OK_END}`;
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
 * Answers 207 with rows that arrive in pieces of rendered text. Sends up to `wholeLength` bytes at once, with a
 * Content-Length, and returns the body; streams more, at the client's pace. When a piece throws, the answer is not begun,
 * or incomplete.
 */
export async function sendMultistatus(
  exchange: Pick<Exchange, 'answer' | 'response' | 'signal' | 'write' | 'writeHead'>,
  pieces: AsyncIterable<Uint8Array>,
  { wholeLength }: { readonly wholeLength: number },
): Promise<Buffer | undefined> {
  const { response, signal } = exchange;
  const waiting: Uint8Array[] = [HEAD_BYTES];
  let length = HEAD_BYTES.length;
  for await (const piece of pieces) {
    waiting.push(piece);
    length += piece.length;
    if (length < wholeLength) continue;
    if (!response.headersSent) exchange.writeHead(207, { 'Content-Type': XML_TYPE });
    for (let next = waiting.shift(); next; next = waiting.shift()) {
      signal.throwIfAborted();
      await exchange.write(next);
      // A fast client takes all at once, and one that is gone as well: neither may keep the others waiting.
      await otherTasks();
    }
  }
  if (response.headersSent) {
    signal.throwIfAborted();
    response.end(TAIL);
    return undefined;
  }
  waiting.push(TAIL_BYTES);
  const body = Buffer.concat(waiting);
  await answerBody(exchange, body);
  return body;
}

/** Returns the rows in a whole answer. */
export function rowsIn(body: Buffer): Buffer {
  return body.subarray(HEAD_BYTES.length, body.length - TAIL_BYTES.length);
}

/** Joins short pieces, so that each is worth a call of the system. */
export async function* joined(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let short: Uint8Array[] = [];
  let length = 0;
  for await (const piece of pieces) {
    short.push(piece);
    length += piece.length;
    if (length < JOINED_LENGTH) continue;
    yield short.length > 1 ? Buffer.concat(short) : piece;
    short = [];
    length = 0;
  }
  if (length > 0) yield Buffer.concat(short);
}
