import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A call that the scripted service received. */
export interface Received {
  /** The function without `/2/`, or `oauth2/token`. */
  readonly route: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: Buffer;
  /** The argument from the body or the header. */
  readonly arg: unknown;
}

/** Answers a call, or fails it. */
export type Answer = (
  response: ServerResponse,
  call: Received,
  request: IncomingMessage,
) => void | Promise<void>;

/**
 * A service with scripted answers: for each route a list, used in order, whose last answer is repeated. A
 * route without answers gets 404 text, as in the real service.
 */
export class ScriptedService {
  readonly calls: Received[] = [];
  /** Number of requests whose client disconnected before the end of the answer. */
  aborted = 0;
  readonly #answers = new Map<string, Answer[]>();
  readonly #watchers: (() => void)[] = [];

  private constructor(
    private readonly server: Server,
    readonly url: string,
  ) {
    server.on('request', (request, response) => void this.#handle(request, response));
  }

  static async start(): Promise<ScriptedService> {
    const server = createServer();
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    return new ScriptedService(server, `http://127.0.0.1:${port}`);
  }

  on(route: string, ...answers: Answer[]): this {
    this.#answers.set(route, answers);
    return this;
  }

  callsOf(route: string): Received[] {
    return this.calls.filter((call) => call.route === route);
  }

  get routes(): string[] {
    return this.calls.map(({ route }) => route);
  }

  /** Resolves when `condition` holds, which is checked at each call and abort. */
  async until(condition: () => boolean): Promise<void> {
    while (!condition()) await new Promise<void>((resolve) => this.#watchers.push(resolve));
  }

  async close(): Promise<void> {
    this.server.closeAllConnections();
    this.server.close();
    await once(this.server, 'close');
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    response.on('close', () => {
      if (response.writableFinished) return;
      this.aborted += 1;
      this.#notify();
    });
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of request) chunks.push(chunk);
    } catch {
      return;
    }
    const call = received(request, Buffer.concat(chunks));
    this.calls.push(call);
    this.#notify();
    const answers = this.#answers.get(call.route) ?? [];
    const answer = answers.length > 1 ? answers.shift() : answers[0];
    response.setHeader('x-dropbox-request-id', REQUEST_ID);
    await (answer ?? text(404, 'no such route'))(response, call, request);
  }

  #notify(): void {
    for (const notify of this.#watchers.splice(0)) notify();
  }
}

export const REQUEST_ID = '0123456789abcdef0123456789abcdef';

function received(request: IncomingMessage, body: Buffer): Received {
  const header = request.headers['dropbox-api-arg'];
  const route = (request.url ?? '').replace(/^\/(2\/)?/, '');
  const isJson = request.headers['content-type'] === 'application/json';
  const argText = typeof header === 'string' ? header : isJson ? body.toString('utf8') : undefined;
  return {
    route,
    headers: request.headers,
    body,
    arg: argText === undefined ? undefined : JSON.parse(argText),
  };
}

export function json(status: number, value: unknown, headers: Record<string, string> = {}): Answer {
  return (response) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(value));
  };
}

export const ok = (value: unknown): Answer => json(200, value);

export function text(status: number, body: string, headers: Record<string, string> = {}): Answer {
  return (response) => {
    response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8', ...headers }).end(body);
  };
}

/** Returns an answer 409 with an error union and its summary. */
export function refuse(error: Record<string, unknown>, summary: string): Answer {
  return json(409, { error_summary: `${summary}/..`, error });
}

export const notFound = refuse({ '.tag': 'path', path: { '.tag': 'not_found' } }, 'path/not_found');

/** Closes the connection instead of answering. */
export const lose: Answer = (response) => {
  response.destroy();
};

/** Answers after which the call may have taken effect. */
export const LOSSES: readonly [string, Answer][] = [
  ['cut before the answer', lose],
  ['500', text(500, '')],
  ['an answer of rubbish', text(200, '<html>')],
];

/** Never answers. */
export const hang: Answer = () => {};

/** Returns the FileMetadata of a file, without a tag. */
export function fileMetadata(path: string, more: Record<string, unknown> = {}): Record<string, unknown> {
  const name = path.slice(path.lastIndexOf('/') + 1);
  return {
    name,
    path_lower: path.toLowerCase(),
    path_display: path,
    id: 'id:AAAAAAAAAAAAAAAAAAAAAA',
    client_modified: '2026-01-01T00:00:00Z',
    server_modified: '2026-01-01T00:00:00Z',
    rev: '0123456789abc',
    size: 3,
    is_downloadable: true,
    content_hash: 'a'.repeat(64),
    ...more,
  };
}

export function folderMetadata(path: string, more: Record<string, unknown> = {}): Record<string, unknown> {
  const name = path.slice(path.lastIndexOf('/') + 1);
  return { name, path_lower: path.toLowerCase(), path_display: path, id: 'id:folder', ...more };
}

export const tagged = (tag: 'file' | 'folder' | 'deleted', metadata: Record<string, unknown>) => ({
  '.tag': tag,
  ...metadata,
});
