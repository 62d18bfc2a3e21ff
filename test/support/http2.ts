import { once } from 'node:events';
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  type IncomingHttpHeaders,
  type IncomingHttpStatusHeader,
} from 'node:http2';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { onTestFinished } from 'vitest';
import type { Exchange } from '../../src/http/exchange.ts';
import type { CertificateFiles } from '../../src/http/node-server.ts';
import { PROJECT_ROOT } from './build.ts';
import { type Listening, listening } from './listening.ts';

const certificate = (name: string) => join(PROJECT_ROOT, 'test/support/certificates', name);

export const TLS: CertificateFiles = { certFile: certificate('one.pem'), keyFile: certificate('one.key') };

export interface Http2Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders & IncomingHttpStatusHeader;
  readonly text: string;
  /** The code with which the stream was reset; 0 for a stream that ended. */
  readonly code: number;
}

/** A connection that speaks HTTP/2, closed at the end of the test. */
export class Http2Client {
  readonly session: ClientHttp2Session;

  constructor(url: string, options: Parameters<typeof connect>[1] = {}) {
    this.session = connect(url, { rejectUnauthorized: false, ...options });
    this.session.on('error', () => {});
    onTestFinished(() => this.session.destroy());
  }

  /** Begins a request, and with `body` ends it. */
  begin(
    method: string,
    path: string,
    headers: Readonly<Record<string, string>> = {},
    body?: string | Uint8Array,
  ): ClientHttp2Stream {
    const stream = this.session.request(
      { ...headers, ':method': method, ':path': path },
      { endStream: body === undefined && method !== 'PUT' },
    );
    stream.on('error', () => {});
    if (body !== undefined) stream.end(body);
    return stream;
  }

  send(...request: Parameters<Http2Client['begin']>): Promise<Http2Answer> {
    return answerOf(this.begin(...request));
  }

  /** Resolves when the connection is closed. */
  async closed(): Promise<void> {
    if (!this.session.destroyed) await once(this.session, 'close');
  }
}

/** Reads the answer of a request, also one that is cut off. Rejects without any answer. */
export async function answerOf(stream: ClientHttp2Stream): Promise<Http2Answer> {
  const closed = new Promise<void>((resolve) => stream.once('close', resolve));
  const [headers] = await Promise.race([
    once(stream, 'response'),
    closed.then(() => Promise.reject(new Error(`reset with ${stream.rstCode}, without an answer`))),
  ]);
  const body = await text(stream).catch(() => '');
  await closed;
  return { status: Number(headers[':status']), headers, text: body, code: stream.rstCode ?? 0 };
}

/** What each connection of HTTP/2 begins with (RFC 9113 §3.4), and empty SETTINGS. */
const PREFACE = Buffer.concat([Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), frame(4, 0, 0, '')]);

/** Returns a frame (RFC 9113 §4.1) with a payload in Latin-1. */
export function frame(type: number, flags: number, stream: number, payload: string): Buffer {
  const content = Buffer.from(payload, 'latin1');
  const head = Buffer.alloc(9);
  head.writeUIntBE(content.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, content]);
}

/** Opens a connection for frames that no client sends. */
export async function connectFrames(port: number): Promise<TLSSocket> {
  const socket = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false, ALPNProtocols: ['h2'] });
  socket.on('error', () => {});
  onTestFinished(() => void socket.destroy());
  await once(socket, 'secureConnect');
  socket.write(PREFACE);
  socket.resume();
  return socket;
}

/** POST https://x/ (RFC 7541), and a frame that begins this request and leaves its body open. */
export const POST_FIELDS = '\x83\x87\x84\x41\x01x';
export const POST = frame(1, 4, 1, POST_FIELDS);

type Handle = (exchange: Exchange) => Promise<void>;

/** Answers at once. */
export const ok: Handle = (exchange) => exchange.answer({ status: 200, headers: {}, body: 'handled' });

/** Answers with the size of the body. */
export const counted: Handle = async (exchange) => {
  let sizeBytes = 0;
  for await (const piece of exchange.body()) sizeBytes += piece.length;
  await exchange.answer({ status: 200, headers: {}, body: `${sizeBytes}` });
};

/** Starts a listener that speaks HTTP/2. */
export function serving(handle: Handle, options: Parameters<typeof listening>[0] = {}): Promise<Listening> {
  return listening({
    tls: TLS,
    handle: (_request, _response, _access, exchange) => handle(exchange),
    ...options,
  });
}

/** Returns a handler that waits, and what it waits for. */
export function waiting() {
  const signals: AbortSignal[] = [];
  let release = (): void => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  const handle: Handle = async (exchange) => {
    signals.push(exchange.signal);
    await Promise.race([released, once(exchange.signal, 'abort')]);
    await ok(exchange);
  };
  return { signals, release, handle };
}
