import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import aws4 from 'aws4';
import { Pool } from 'undici';
import { elapsedMs, type Instant, systemClock } from '../../../../util/clock.ts';
import { type BucketAccess, bucketText } from './bucket-address.ts';
import { errorCodeIn, type KeyPage, keyPageIn } from './bucket-answers.ts';
import { BucketError } from './bucket-error.ts';

/** Connections to the store at the same time. */
const CONNECTIONS_MAX = 32;

/** How long the store may take for a piece of a request, for the head of an answer, and for its next bytes, in ms. */
const SILENCE_MS = 30_000;

/**
 * Size of the pieces in which a body is sent, in bytes. Each shows progress, so that a slow line is not taken for a dead
 * store.
 */
const PIECE_BYTES = 256 * 1024;

/** Pauses before a request is repeated that failed for a passing reason, in ms; some randomness is added. */
const PAUSES_MS = [200, 500, 1000, 2000];

/** How long after its start a request is repeated, in ms: the client waits, and gives up at some time. */
const REPEATED_MS_MAX = 20_000;

/** Statuses of passing failures. */
const PASSING: ReadonlySet<number> = new Set([408, 429, 500, 502, 503, 504]);

/** Maximum size of the body of a refusal that is read, in bytes. */
const REFUSAL_BYTES_MAX = 64 * 1024;

/** Codes of refusals whose cause a person can remove. */
const REMEDIES: Readonly<Record<string, string>> = {
  NoSuchBucket: 'create the bucket',
  InvalidAccessKeyId: 'check AWS_ACCESS_KEY_ID',
  SignatureDoesNotMatch: 'check AWS_SECRET_ACCESS_KEY',
  InvalidToken: 'check AWS_SESSION_TOKEN',
  ExpiredToken: 'renew the keys and AWS_SESSION_TOKEN, and start again',
  AccessDenied: 'let this key put, get, list and delete objects there',
  RequestTimeTooSkewed: "set this machine's clock",
  AuthorizationHeaderMalformed: 'check the region in the address',
};

interface BucketRequest {
  readonly method: 'GET' | 'PUT' | 'DELETE';
  /** Without a key the request is about the bucket. */
  readonly key?: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Buffer;
  /** SHA-256 of the body, in hex. */
  readonly bodyHash?: string;
}

type Received = Awaited<ReturnType<Pool['request']>>;

/** The hash of an empty body. */
const NOTHING_HASH = createHash('sha256').digest('hex');

/**
 * A bucket of an object store that speaks S3. A request that fails for a passing reason is repeated for some seconds. All
 * methods throw `BucketError`.
 */
export class Bucket {
  readonly #pool: Pool;
  readonly #host: string;
  /** When a request last ended because the store was silent, if it has not answered another one since. */
  #hungAt: Instant | undefined;

  constructor(
    private readonly access: BucketAccess,
    silenceMs = SILENCE_MS,
  ) {
    const { origin, host } = new URL(access.address.endpoint);
    this.#host = host;
    this.#pool = new Pool(origin, {
      connections: CONNECTIONS_MAX,
      headersTimeout: silenceMs,
      bodyTimeout: silenceMs,
    });
  }

  /** Throws if the store has been silent for too long since an instant, and has not answered after that. */
  expectAnswering(since: Instant): void {
    if (this.#hungAt !== undefined && since < this.#hungAt)
      throw new BucketError(`${this.#host} does not answer`);
  }

  /** Puts an object, whose SHA-256 is `bodyHash` in hex, in place of an existing one. */
  async put(key: string, body: Buffer, bodyHash: string): Promise<void> {
    const headers = {
      'content-length': String(body.length),
      'content-md5': createHash('md5').update(body).digest('base64'),
    };
    await this.#ask({ method: 'PUT', key, headers, body, bodyHash }, read);
  }

  /**
   * Returns the bytes of an object from `start` on that fit into `into`; fewer when it is shorter, and `undefined` when there
   * is none.
   */
  async get(key: string, into: Buffer, start = 0): Promise<Buffer | undefined> {
    const headers = { range: `bytes=${start}-${start + into.length - 1}` };
    try {
      return await this.#ask({ method: 'GET', key, headers }, (answer) => readInto(answer, into));
    } catch (error) {
      if (error instanceof BucketError && error.refusal === 'NoSuchKey') return undefined;
      if (error instanceof BucketError && error.status === 416) return into.subarray(0, 0);
      throw error;
    }
  }

  /** Removes an object. Succeeds if there is none. */
  async remove(key: string): Promise<void> {
    try {
      await this.#ask({ method: 'DELETE', key }, read);
    } catch (error) {
      if (!(error instanceof BucketError) || error.refusal !== 'NoSuchKey') throw error;
    }
  }

  /** Yields all keys that begin with `prefix`. */
  async *keys(prefix: string): AsyncIterable<string> {
    let continuation: string | undefined;
    do {
      const page = await this.#page(prefix, continuation);
      yield* page.keys;
      continuation = page.continuation;
    } while (continuation !== undefined);
  }

  /** Closes the connections. */
  close(): Promise<void> {
    return this.#pool.destroy();
  }

  async #page(prefix: string, continuation: string | undefined): Promise<KeyPage> {
    const query = {
      ...(continuation !== undefined && { 'continuation-token': continuation }),
      'list-type': '2',
      prefix,
    };
    // An answer that is no such XML, as of a proxy, counts as none.
    return await this.#ask({ method: 'GET', query }, async (answer) => keyPageIn(await read(answer)));
  }

  /** Sends a request, again after a passing failure, and returns what `receive` makes of its answer. */
  async #ask<T>(request: BucketRequest, receive: (answer: Received) => Promise<T>): Promise<T> {
    const start = systemClock.instant();
    for (const pauseMs of PAUSES_MS) {
      try {
        return await this.#once(request, receive);
      } catch (error) {
        const isPassing =
          error instanceof BucketError && (error.status === undefined || PASSING.has(error.status));
        if (!isPassing || elapsedMs(systemClock, start) > REPEATED_MS_MAX) throw error;
      }
      await sleep(pauseMs * (0.5 + Math.random()));
    }
    return await this.#once(request, receive);
  }

  async #once<T>(request: BucketRequest, receive: (answer: Received) => Promise<T>): Promise<T> {
    const { method, body } = request;
    try {
      const answer = await this.#pool.request({ ...this.#signed(request), method, body: sent(body) });
      this.#hungAt = undefined;
      if (answer.statusCode >= 300) throw await this.#refusal(answer);
      return await receive(answer);
    } catch (error) {
      if (error instanceof BucketError) throw error;
      if (error instanceof Error && /Timeout/.test(error.name)) this.#hungAt = systemClock.instant();
      const why = error instanceof Error ? error.message : String(error);
      throw new BucketError(`${this.#host} does not answer as it should (${why})`, undefined, '', {
        cause: error,
      });
    }
  }

  /** Returns the path and the headers of a request, with its signature (AWS Signature Version 4). */
  #signed({ method, key, query = {}, headers = {}, bodyHash = NOTHING_HASH }: BucketRequest) {
    const { address, login } = this.access;
    const path = [address.bucket, ...(key === undefined ? [] : key.split('/'))]
      .map(encodeURIComponent)
      .join('/');
    const words = new URLSearchParams(query).toString().replaceAll('+', '%20');
    const { region } = address;
    const signed = aws4.sign(
      {
        ...{ service: 's3', region, method, host: this.#host },
        path: `/${path}${words === '' ? '' : `?${words}`}`,
        headers: { ...headers, 'x-amz-content-sha256': bodyHash },
      },
      { ...login },
    );
    return { path: signed.path ?? '', headers: signed.headers as Record<string, string> }; // strings went in
  }

  async #refusal(answer: Received): Promise<BucketError> {
    const code = errorCodeIn((await readSome(answer)).toString());
    const remedy = REMEDIES[code];
    const what =
      `${bucketText(this.access.address)} at ${this.#host} answers ${answer.statusCode} ${code}`.trim();
    return new BucketError(remedy === undefined ? what : `${what}: ${remedy}`, answer.statusCode, code);
  }
}

function sent(body: Buffer | undefined): Readable | null {
  return body ? Readable.from(pieces(body), { objectMode: false }) : null;
}

function* pieces(body: Buffer): Generator<Buffer> {
  for (let start = 0; start < body.length; start += PIECE_BYTES)
    yield body.subarray(start, start + PIECE_BYTES);
}

function read({ body }: Received): Promise<string> {
  return body.text();
}

async function readInto({ body }: Received, into: Buffer): Promise<Buffer> {
  let filled = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    // A store that ignores the range sends more.
    if (filled + chunk.length > into.length) throw new Error('more bytes than it was asked for');
    filled += chunk.copy(into, filled);
  }
  return into.subarray(0, filled);
}

async function readSome({ body }: Received): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let sizeBytes = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    sizeBytes += chunk.length;
    if (sizeBytes >= REFUSAL_BYTES_MAX) break;
  }
  return Buffer.concat(chunks);
}
