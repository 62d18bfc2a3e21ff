import { type IncomingHttpHeaders, type OutgoingHttpHeaders, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import type { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import type { Drive } from '../../src/dav/context.ts';
import { createDavHandler } from '../../src/dav/handler.ts';
import { startGatewayServer } from '../../src/http/gateway-server.ts';
import type { PieceStore } from '../../src/state/pieces/piece-store.ts';
import type { DriveState } from '../../src/state/state.ts';
import type { HttpResponse } from '../../src/util/http-messages.ts';
import { type Log, type LogFields, silentLog } from '../../src/util/log.ts';
import type { Networks } from '../../src/util/networks.ts';
import { pathOf } from '../../src/util/path.ts';
import { ManualClock } from './manual-clock.ts';
import { MemoryFiles } from './memory-files.ts';
import { memoryState } from './memory-state.ts';
import { path } from './paths.ts';
import { unhurried } from './unhurried.ts';

export interface DavAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  /** The body as text. */
  readonly text: string;
}

export interface DavRequest {
  readonly headers?: OutgoingHttpHeaders;
  /** A stream is sent in chunks, unless `headers` has its length. */
  readonly body?: string | Uint8Array | Readable;
  /** The user of the request, `ann` by default. */
  readonly user?: string;
  readonly agent?: string;
}

/** The header that names the user of a request. */
const USER = 'x-test-user';

export interface DavServer {
  readonly url: string;
  readonly port: number;
  readonly files: MemoryFiles;
  readonly state: DriveState;
  readonly clock: ManualClock;
  /** Errors that the handler logged. */
  readonly errors: LogFields[];
  /** Sends a request. `target` is sent unchanged. */
  send(method: string, target: string, options?: DavRequest): Promise<DavAnswer>;
  /** Sends raw bytes. Resolves with all bytes received until the connection was closed. */
  raw(bytes: string): Promise<string>;
  /** Opens a raw connection. */
  socket(): Socket;
  /** Resolves when no response is open any more. */
  untilAlone(): Promise<void>;
  /** Writes a file, and makes the folders above it. */
  file(path: string, content?: string | Uint8Array): Promise<void>;
  folder(path: string): Promise<void>;
  /** Returns the content of a file as text, or `undefined`. */
  content(path: string): string | undefined;
  close(): Promise<void>;
}

/** Starts the real listener and handler on a drive in memory. */
export async function startDav(
  options: {
    readonly wrap?: (drive: Drive) => Drive;
    readonly trustedProxies?: Networks;
    readonly basePath?: string;
    readonly listingBytesMax?: number;
    readonly pieces?: PieceStore;
    readonly checksums?: 'given' | 'all';
    /** Makes the tokens of locks. The default counts, so that two servers make the same. */
    readonly randomUuid?: () => string;
  } = {},
): Promise<DavServer> {
  const clock = new ManualClock();
  const state = memoryState();
  const files = new MemoryFiles({ clock, properties: state.properties });
  const drive = options.wrap?.({ files, state }) ?? { files, state };
  const errors: LogFields[] = [];
  let uuids = 0;
  const counted = () => `00000000-0000-4000-8000-${(++uuids).toString().padStart(12, '0')}`;
  const handle = createDavHandler({
    clock,
    log: logInto(errors),
    ...(options.listingBytesMax !== undefined && { listingBytesMax: options.listingBytesMax }),
    randomUuid: options.randomUuid ?? counted,
    ...{ pieces: options.pieces, checksums: options.checksums },
  });
  const open = new Set<HttpResponse>();
  const listener = await startGatewayServer({
    host: '127.0.0.1',
    port: 0,
    users: undefined,
    driveOf: () => drive,
    ownNames: ['dav.example', 'inner', 'x'],
    log: silentLog,
    ...(options.trustedProxies && { trustedProxies: options.trustedProxies }),
    ...(options.basePath !== undefined && { basePath: options.basePath }),
    handle: (exchange, access) => {
      const { request, response } = exchange;
      open.add(response);
      response.once('close', () => open.delete(response));
      return handle(exchange, { ...access, user: { name: String(request.headers[USER] ?? 'ann') } });
    },
  });
  const { port } = listener;
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    files,
    state,
    clock,
    errors,
    send: (method, target, options) => send(port, method, target, options ?? {}),
    raw: (bytes) => raw(port, bytes),
    socket: () => connect(port, '127.0.0.1'),
    async untilAlone() {
      while (open.size > 0) await new Promise((resolve) => setImmediate(resolve));
    },
    file: (at, content = '') => putFile(files, at, content),
    folder: (at) => makeFolders(files, at),
    content: (at) => files.contentAt(path(at))?.toString(),
    close() {
      for (const response of open) response.destroy();
      return listener.close(unhurried());
    },
  };
}

function logInto(errors: LogFields[]): Log {
  return { info() {}, warn() {}, error: (event, fields) => errors.push({ event, ...fields }) };
}

function send(port: number, method: string, target: string, options: DavRequest): Promise<DavAnswer> {
  const { body, agent } = options;
  const headers = {
    ...(agent !== undefined && { 'User-Agent': agent }),
    ...(options.user !== undefined && { [USER]: options.user }),
    ...(typeof body === 'string' && { 'Content-Length': Buffer.byteLength(body) }),
    ...(body instanceof Uint8Array && { 'Content-Length': body.length }),
    ...options.headers,
  };
  return new Promise((resolve, reject) => {
    const outgoing = request({ host: '127.0.0.1', port, method, path: target, headers, agent: false });
    outgoing.once('response', (response) => {
      buffer(response).then((content) => {
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          body: content,
          text: content.toString(),
        });
      }, reject);
    });
    outgoing.once('error', reject);
    if (body === undefined || typeof body === 'string' || body instanceof Uint8Array) outgoing.end(body);
    else body.pipe(outgoing);
  });
}

function raw(port: number, bytes: string): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    const pieces: Buffer[] = [];
    socket.on('data', (piece) => pieces.push(piece));
    // 'close' follows an error.
    socket.on('error', () => {});
    socket.on('close', () => resolve(Buffer.concat(pieces).toString('latin1')));
    socket.write(bytes, 'latin1');
  });
}

async function makeFolders(files: MemoryFiles, at: string): Promise<void> {
  const names = at.split('/').filter((name) => name !== '');
  for (let depth = 1; depth <= names.length; depth++) {
    const folder = pathOf(names.slice(0, depth));
    if (!(await files.stat(folder))) await files.createFolder(folder);
  }
}

async function putFile(files: MemoryFiles, at: string, content: string | Uint8Array): Promise<void> {
  await makeFolders(files, at.slice(0, at.lastIndexOf('/')));
  async function* bytes() {
    yield Buffer.from(content);
  }
  await files.write(path(at), bytes(), { mode: { if: 'any' } });
}
