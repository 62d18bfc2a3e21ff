import { once } from 'node:events';
import { type ServerResponse, STATUS_CODES } from 'node:http';
import { escapeText } from '../xml/write.ts';
import { XML_TYPE } from './answer.ts';

const HEAD = '<?xml version="1.0" encoding="utf-8"?>\n<D:multistatus xmlns:D="DAV:">';
const TAIL = '</D:multistatus>';

/** A streamed answer goes out in pieces of about this size. */
const PIECE_LENGTH = 64 * 1024;

/** `HTTP/1.1 200 OK`: always 1.1, whatever the connection speaks; Kodi compares it by letter. */
export function statusLine(status: number): string {
  return `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`.trimEnd();
}

/** `props` are whole property elements; `condition` is the name of a `DAV:` element (RFC 4918 §16). */
export function propstatXml(status: number, props: string, reason?: string, condition?: string): string {
  const error = condition ? `<D:error><D:${condition}/></D:error>` : '';
  const description = reason ? `<D:responsedescription>${escapeText(reason)}</D:responsedescription>` : '';
  const prop = props === '' ? '<D:prop/>' : `<D:prop>${props}</D:prop>`;
  return `<D:propstat>${prop}<D:status>${statusLine(status)}</D:status>${error}${description}</D:propstat>`;
}

/** One row: the resource at `href`, which is percent-encoded but not yet XML. */
export function responseXml(href: string, propstats: string): string {
  return responseStart(href) + responseEnd(propstats);
}

export function responseStart(href: string): string {
  return `<D:response><D:href>${escapeText(href)}`;
}

export function responseEnd(propstats: string): string {
  return `</D:href>${propstats}</D:response>`;
}

/** A whole multistatus of a few rows. */
export function multistatusBody(rows: readonly string[]): Buffer {
  return Buffer.from(HEAD + rows.join('') + TAIL);
}

/** Answers with a body made before. */
export function answerMultistatus(response: ServerResponse, body: Buffer): void {
  response.writeHead(207, { 'Content-Type': XML_TYPE, 'Content-Length': body.length });
  response.end(body);
}

/**
 * Answers with these rows, group by group. What has up to `wholeLength` characters goes out in one piece with
 * its length, and is returned; more is streamed no faster than the client reads. When a group throws, the
 * answer is left as it is: not begun, or to be broken off.
 */
export async function sendMultistatus(
  response: ServerResponse,
  groups: Iterable<Iterable<string>> | AsyncIterable<Iterable<string>>,
  options: { readonly wholeLength: number; readonly signal: AbortSignal },
): Promise<Buffer | undefined> {
  let text = HEAD;
  for await (const rows of groups) {
    for (const row of rows) {
      text += row;
      if (text.length < (response.headersSent ? PIECE_LENGTH : options.wholeLength)) continue;
      await write(response, text, options.signal);
      text = '';
    }
  }
  text += TAIL;
  if (response.headersSent) {
    response.end(text);
    return undefined;
  }
  const body = Buffer.from(text);
  answerMultistatus(response, body);
  return body;
}

async function write(response: ServerResponse, text: string, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  if (!response.headersSent) response.writeHead(207, { 'Content-Type': XML_TYPE });
  if (!response.write(text)) await once(response, 'drain', { signal });
}
