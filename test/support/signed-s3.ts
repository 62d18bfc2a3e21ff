import { sign } from 'aws4';
import { request } from 'undici';
import type { Bucket } from './object-stores.ts';

export interface S3Request {
  readonly method: 'GET' | 'HEAD' | 'PUT' | 'DELETE';
  /** The object's key of unreserved characters and slashes. The default is the bucket itself. */
  readonly key?: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Buffer;
}

export interface S3Response {
  readonly status: number;
  /** Returns the first value of a header. */
  header(name: string): string | undefined;
  readonly body: Buffer;
  text(): string;
}

/**
 * Sends one request of Amazon S3 with signature version 4 (AWS General Reference, "Signing AWS API requests"). A header
 * `x-amz-content-sha256` is signed as it is given; the default is the true hash.
 */
export async function requestObject(bucket: Bucket, wanted: S3Request): Promise<S3Response> {
  const { method, key = '', query = {}, headers = {}, body } = wanted;
  const search = new URLSearchParams(query).toString();
  const path = `/${bucket.bucket}${key && `/${key}`}${search && `?${search}`}`;
  const signed = sign(
    {
      ...{ service: 's3', region: bucket.region, host: new URL(bucket.url).host, method, path },
      // aws4 would name the type of a form.
      headers: { 'content-type': 'application/octet-stream', ...headers },
      ...(body && { body }),
    },
    { accessKeyId: bucket.accessKey, secretAccessKey: bucket.secretKey },
  );
  const response = await request(`${bucket.url}${path}`, {
    method,
    headers: Object.entries(signed.headers ?? {}).flatMap(([name, value]) => [name, String(value)]),
    body: body ?? null,
  });
  const received = Buffer.from(await response.body.arrayBuffer());
  return {
    status: response.statusCode,
    header: (name) => [response.headers[name] ?? []].flat()[0],
    body: received,
    text: () => received.toString(),
  };
}
