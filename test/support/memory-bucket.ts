import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import aws4 from 'aws4';
import type { BucketAccess, BucketLogin } from '../../src/service/storage/blocks/bucket/bucket-address.ts';

const LOGIN: BucketLogin = { accessKeyId: 'the key', secretAccessKey: 'the secret' };

/** Maximum number of keys on a page: few, so that tests have several pages. */
const PAGE_KEYS = 3;

/** A request, and the object that it names. */
export interface BucketRequest {
  readonly method: string;
  /** Empty for a listing. */
  readonly key: string;
}

/** How a request fails. */
export type BucketFault =
  /** The store does nothing and answers so. */
  | { readonly status: number; readonly code: string }
  /** The connection ends before the store has done anything. */
  | 'reset'
  /** The connection ends when the store has done what was asked. */
  | 'lost-answer'
  /** The connection ends; the store does what was asked when `settle` is called. */
  | 'late'
  /** The object is sent with one byte changed. */
  | 'wrong-byte'
  /** The connection ends in the middle of the object. */
  | 'cut'
  /** The store does nothing and never answers. */
  | 'silent';

/** A store with one bucket, which speaks S3 and checks signatures, and which can fail. */
export interface MemoryBucket {
  readonly access: BucketAccess;
  readonly objects: Map<string, Buffer>;
  /** Requests so far. */
  readonly requests: readonly BucketRequest[];
  /** Returns how the next request fails; `undefined` lets it succeed. */
  fault: (request: BucketRequest) => BucketFault | undefined;
  /** How fast it reads the body of a request. */
  bytesPerSecond: number;
  /** Lets the store do what requests with the fault `late` asked for. */
  settle(): void;
  close(): Promise<void>;
}

/** Starts a store with one user, whose keys are permanent by default. */
export async function startMemoryBucket(login = LOGIN): Promise<MemoryBucket> {
  const objects = new Map<string, Buffer>();
  const requests: BucketRequest[] = [];
  const late: (() => void)[] = [];
  const server = createServer((request, response) => void answer(request, response));
  server.listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as AddressInfo; // listening on TCP

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await read(request);
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://store');
    const [, name, ...rest] = pathname.split('/').map(decodeURIComponent);
    const [method = '', key] = [request.method, rest.join('/')];
    requests.push({ method, key });
    const fault = bucket.fault({ method, key });
    if (fault === 'silent') return;
    if (fault === 'reset') return void request.socket.destroy();
    const refusal = typeof fault === 'object' ? fault : refusalOf(request, body, name, login);
    if (refusal) return void refuse(response, refusal);
    if (fault === 'late') {
      late.push(() => void change(method, key, body));
      return void request.socket.destroy();
    }
    change(method, key, body);
    if (fault === 'lost-answer') return void request.socket.destroy();
    if (method === 'GET' && key === '') return void response.end(listing(searchParams));
    if (method === 'GET') return send(request, response, objects.get(key), fault);
    response.writeHead(method === 'DELETE' ? 204 : 200).end();
  }

  async function read(request: IncomingMessage): Promise<Buffer> {
    const started = performance.now();
    const chunks: Buffer[] = [];
    let sizeBytes = 0;
    for await (const chunk of request as AsyncIterable<Buffer>) {
      chunks.push(chunk);
      sizeBytes += chunk.length;
      const earlyMs = started + (1000 * sizeBytes) / bucket.bytesPerSecond - performance.now();
      if (earlyMs > 0) await pause(earlyMs);
    }
    return Buffer.concat(chunks);
  }

  function change(method: string, key: string, body: Buffer): void {
    if (method === 'PUT') objects.set(key, body);
    if (method === 'DELETE') objects.delete(key);
  }

  function listing(words: URLSearchParams): string {
    const after = words.get('continuation-token') ?? '';
    const keys = [...objects.keys()].filter((key) => key.startsWith(words.get('prefix') ?? '')).sort();
    const left = keys.filter((key) => key > after);
    const page = left.slice(0, PAGE_KEYS);
    const rows = page.map((key) => `<Contents><Key>${key}</Key><Size>1</Size></Contents>`);
    const more = left.length > PAGE_KEYS && `<NextContinuationToken>${page.at(-1)}</NextContinuationToken>`;
    return `<?xml version="1.0"?><ListBucketResult>${rows.join('')}${more || ''}</ListBucketResult>`;
  }

  const bucket: MemoryBucket = {
    access: {
      address: {
        endpoint: `http://127.0.0.1:${port}`,
        region: 'us-east-1',
        bucket: 'drive',
        prefix: 'our files/',
      },
      login,
    },
    objects,
    requests,
    fault: () => undefined,
    bytesPerSecond: Infinity,
    settle() {
      for (const happen of late.splice(0)) happen();
    },
    async close() {
      server.close();
      server.closeAllConnections();
      await new Promise((resolve) => server.once('close', resolve));
    },
  };
  return bucket;
}

type Refusal = Extract<BucketFault, object>;

function refuse(response: ServerResponse, { status, code }: Refusal): void {
  response.writeHead(status).end(`<?xml version="1.0"?><Error><Code>${code}</Code></Error>`);
}

function send(
  request: IncomingMessage,
  response: ServerResponse,
  object: Buffer | undefined,
  fault: BucketFault | undefined,
): void {
  if (!object) return void refuse(response, { status: 404, code: 'NoSuchKey' });
  const [, start, end] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '') ?? [];
  const part = Buffer.from(object.subarray(Number(start), Number(end) + 1));
  if (part.length === 0) return void refuse(response, { status: 416, code: 'InvalidRange' });
  if (fault === 'wrong-byte') part[part.length >> 1] = (part[part.length >> 1] ?? 0) ^ 1;
  response.writeHead(206, { 'content-length': part.length });
  if (fault !== 'cut') return void response.end(part);
  response.write(part.subarray(0, part.length >> 1), () => request.socket.destroy());
}

/** Returns how a real store refuses a request that is not signed, or whose body has changed. */
function refusalOf(
  { method, url, headers }: IncomingMessage,
  body: Buffer,
  bucket: string | undefined,
  login: BucketLogin,
) {
  const { authorization, host, ...others } = headers;
  const isKnown = authorization?.includes(`Credential=${login.accessKeyId}/`);
  if (!isKnown) return { status: 403, code: 'InvalidAccessKeyId' };
  const names = /SignedHeaders=([^,]*)/.exec(authorization ?? '')?.[1]?.split(';') ?? [];
  const signed = Object.fromEntries(names.map((name) => [name, name === 'host' ? host : others[name]]));
  const again = aws4.sign(
    { service: 's3', region: 'us-east-1', method: method ?? '', path: url ?? '', headers: signed },
    { accessKeyId: login.accessKeyId, secretAccessKey: login.secretAccessKey },
  );
  if (again.headers?.['Authorization'] !== authorization)
    return { status: 403, code: 'SignatureDoesNotMatch' };
  if (headers['x-amz-security-token'] !== login.sessionToken) return { status: 403, code: 'InvalidToken' };
  if (bucket !== 'drive') return { status: 404, code: 'NoSuchBucket' };
  const hash = createHash('sha256').update(body).digest('hex');
  if (headers['x-amz-content-sha256'] !== hash) return { status: 400, code: 'XAmzContentSHA256Mismatch' };
  const md5 = createHash('md5').update(body).digest('base64');
  if (method === 'PUT' && headers['content-md5'] !== md5) return { status: 400, code: 'BadDigest' };
  return undefined;
}
