import { STATUS_CODES } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { setImmediate as otherTasks } from 'node:timers/promises';
import { type ContentCoding, compressed, compressing } from '../../util/content-coding.ts';
import type { Exchange } from '../exchange.ts';
import { escapeText } from '../xml/xml-writer.ts';

export const XML_TYPE = 'application/xml; charset="utf-8"';
export const XML_DECLARATION = '<?xml version="1.0" encoding="utf-8"?>\n';

const HEAD = `${XML_DECLARATION}<D:multistatus xmlns:D="DAV:">`;
const TAIL = '</D:multistatus>';

/** Length from which on pieces of a long answer are not joined any more, in bytes. */
const JOINED_LENGTH = 64 * 1024;

/** Shorter answers are not compressed, in bytes: they fit in one packet. */
const COMPRESSED_BYTES_MIN = 1024;

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
  exchange: Pick<Exchange, 'answer' | 'coding'>,
  rows: readonly string[],
): Promise<void> {
  return answerBody(exchange, Buffer.from(HEAD + rows.join('') + TAIL));
}

/** Answers 207 with a whole rendered body. */
export async function answerBody(exchange: Pick<Exchange, 'answer' | 'coding'>, body: Buffer): Promise<void> {
  const coding = body.length >= COMPRESSED_BYTES_MIN ? exchange.coding : undefined;
  const sent = coding ? await compressed(body, coding) : body;
  return exchange.answer({ status: 207, headers: headersFor(coding), body: sent });
}

/**
 * Answers 207 with rows that arrive in pieces of rendered text. Sends up to `wholeLength` bytes at once, with a
 * Content-Length, and returns the body; streams more, at the client's pace. When a piece throws, the answer is not begun,
 * or incomplete.
 */
export async function sendMultistatus(
  exchange: Pick<Exchange, 'answer' | 'coding' | 'response' | 'signal' | 'write' | 'writeHead'>,
  pieces: AsyncIterable<Uint8Array>,
  { wholeLength }: { readonly wholeLength: number },
): Promise<Buffer | undefined> {
  const all = framed(pieces);
  const first: Uint8Array[] = [];
  let length = 0;
  while (length < wholeLength) {
    const { value, done } = await all.next();
    if (done) {
      const body = Buffer.concat(first);
      await answerBody(exchange, body);
      return body;
    }
    first.push(value);
    length += value.length;
  }
  const { coding } = exchange;
  exchange.writeHead(207, headersFor(coding));
  const send = (bytes: AsyncIterable<Uint8Array>) => sendPieces(exchange, bytes);
  if (coding) await pipeline(continued(first, all), compressing(coding), send);
  else await send(continued(first, all));
  exchange.response.end();
  return undefined;
}

async function sendPieces(
  exchange: Pick<Exchange, 'signal' | 'write'>,
  pieces: AsyncIterable<Uint8Array>,
): Promise<void> {
  for await (const piece of pieces) {
    exchange.signal.throwIfAborted();
    await exchange.write(piece);
    // A fast client takes all at once, and one that is gone as well: neither may keep the others waiting.
    await otherTasks();
  }
  exchange.signal.throwIfAborted();
}

async function* framed(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, undefined> {
  yield HEAD_BYTES;
  yield* pieces;
  yield TAIL_BYTES;
}

async function* continued(
  first: readonly Uint8Array[],
  rest: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  yield* first;
  yield* rest;
}

function headersFor(coding: ContentCoding | undefined): Readonly<Record<string, string>> {
  return { 'Content-Type': XML_TYPE, ...(coding && { 'Content-Encoding': coding }) };
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

/** Yields `item` alone. */
export async function* only<T>(item: T): AsyncGenerator<T> {
  yield item;
}
