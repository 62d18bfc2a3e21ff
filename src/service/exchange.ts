import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../util/clock.ts';
import { endBeforeBody, isBodySmall } from '../util/unread-body.ts';

/** What is answered: headers in lower case; `body` may be a stream. */
export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Content | undefined;
}

/** A body of known length whose bytes come as they are read; the next are asked for when the last have gone out. */
export interface Content {
  readonly sizeBytes: number;
  readonly bytes: AsyncIterable<Uint8Array>;
}

/** The client went away before all of its body had come. Nothing that was asked for may happen. */
export class ClientGone extends Error {
  override readonly name = 'ClientGone';
}

/** One request and its answer: the only place that reads from or writes to a connection. */
export class Exchange {
  readonly path: string;
  readonly query: URLSearchParams;
  /** Aborted when the client has gone before it was answered. */
  readonly signal: AbortSignal;
  #bodyTaken = false;

  constructor(
    readonly request: IncomingMessage,
    readonly response: ServerResponse,
    readonly requestId: string,
    readonly clock: Clock,
    /** The client waits to be told `100 Continue` before it sends its body. */
    readonly expectsContinue: boolean,
  ) {
    const [path = '', ...query] = (request.url ?? '').split('?');
    this.path = path;
    this.query = new URLSearchParams(query.join('?'));
    const gone = new AbortController();
    this.signal = gone.signal;
    response.once('close', () => {
      if (!response.writableFinished) gone.abort(new ClientGone('the client has gone'));
    });
    // Without a listener, a reset connection would end the process.
    request.on('error', () => {});
    response.on('error', () => {});
  }

  /** The body's bytes, as they come; at most once. Throws `ClientGone` unless all of them came. */
  async *body(): AsyncGenerator<Uint8Array> {
    this.#bodyTaken = true;
    if (this.expectsContinue) this.response.writeContinue();
    try {
      // Not destroying the request on an early end leaves the connection whole for the answer.
      for await (const chunk of this.request.iterator({ destroyOnReturn: false })) yield chunk;
    } catch (error) {
      throw new ClientGone('the connection broke off in the middle of the body', { cause: error });
    }
    if (!this.request.complete) throw new ClientGone('the connection ended in the middle of the body');
  }

  /** Sends the answer and sees to it that the client can read it. Resolves when all is sent. */
  async answer({ status, headers, body }: Answer): Promise<void> {
    const { request, response } = this;
    const sizeBytes = typeof body === 'object' ? body.sizeBytes : Buffer.byteLength(body ?? '');
    const isBodyHeldBack = this.expectsContinue && !this.#bodyTaken;
    if (!request.complete && (isBodyHeldBack || !isBodySmall(request))) response.shouldKeepAlive = false;
    response.writeHead(status, {
      ...headers,
      ...(hasLength(status) && { 'content-length': String(sizeBytes) }),
    });
    if (typeof body === 'object') await this.#send(body);
    else if (request.method !== 'HEAD' && body) response.write(body);
    if (request.complete) response.end();
    else await endBeforeBody(request, response, this.clock, isBodyHeldBack);
    await handedOver(response);
  }

  /** Ends the connection, as there is no one to answer. */
  drop(): void {
    this.response.destroy();
  }

  async #send({ sizeBytes, bytes }: Content): Promise<void> {
    const iterator = bytes[Symbol.asyncIterator]();
    let leftBytes = sizeBytes;
    try {
      if (this.request.method === 'HEAD') return;
      for (
        let next = await iterator.next();
        !next.done && !this.signal.aborted;
        next = await iterator.next()
      ) {
        leftBytes -= next.value.length;
        if (leftBytes < 0) break;
        await this.#sent(next.value);
      }
      if (leftBytes !== 0 && !this.signal.aborted)
        throw new Error(`the content is not of the ${sizeBytes} bytes that were promised`);
    } catch (error) {
      // A length was promised: cutting the connection is what tells the client that it was not kept.
      this.response.destroy();
      throw error;
    } finally {
      await iterator.return?.();
    }
  }

  /** Resolves when the system has taken `bytes`, or nobody is there to take them: they may change then. */
  #sent(bytes: Uint8Array): Promise<void> {
    const { response, signal } = this;
    return new Promise((resolve) => {
      const go = () => {
        signal.removeEventListener('abort', go);
        resolve();
      };
      signal.addEventListener('abort', go, { once: true });
      response.write(bytes, go);
      if (signal.aborted) go();
    });
  }
}

/** A service that closes cuts connections: not before the system has taken all that is to be sent. */
function handedOver(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    if (response.writableFinished || response.closed) return resolve();
    response.once('finish', resolve);
    response.once('close', resolve);
  });
}

function hasLength(status: number): boolean {
  return status !== 204 && status !== 304;
}

/**
 * The same bytes with the first of them read already: before anything is promised, what fails at once can
 * still be answered for. Whoever takes them must read or return them to the end.
 */
export async function primed(bytes: AsyncIterable<Uint8Array>): Promise<AsyncIterable<Uint8Array>> {
  const iterator = bytes[Symbol.asyncIterator]();
  const read: IteratorResult<Uint8Array>[] = [await iterator.next()];
  return {
    [Symbol.asyncIterator]: () => ({
      next: async () => read.shift() ?? (await iterator.next()),
      return: async () => {
        await iterator.return?.();
        return { done: true, value: undefined };
      },
    }),
  };
}
