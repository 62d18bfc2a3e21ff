import type { ByteRange } from '../util/ranges.ts';
import { headerJson } from './arg.ts';
import type { Host, HttpRequest } from './http.ts';

/** A call without its token. */
export interface CallRequest extends HttpRequest {
  /** Like `files/get_metadata`. */
  readonly route: string;
}

/** RPC style: the argument is the body. `undefined` is the argument of a route that takes none. */
export function rpcRequest(route: string, arg: unknown, host: Host = 'base'): CallRequest {
  return {
    route,
    host,
    path: pathOfRoute(route),
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(arg ?? null),
  };
}

/** RPC style, for a call that may move or remove many files. */
export function slowRpcRequest(route: string, arg: unknown): CallRequest {
  return { ...rpcRequest(route, arg), answerTimeout: 'slow' };
}

/** The commit of a large file, or of many: more than an entry takes, and less than a client waits for. */
export const COMMIT_TIMEOUT = { ms: 50_000 };

/** Content-upload style: the argument is a header, the body the bytes. */
export function uploadRequest(route: string, arg: unknown, bytes: Uint8Array): CallRequest {
  return {
    route,
    host: 'content',
    path: pathOfRoute(route),
    headers: { 'content-type': 'application/octet-stream', 'dropbox-api-arg': headerJson(arg) },
    body: bytes,
  };
}

/** Content-download style: no body, and the result is a header. */
export function downloadRequest(route: string, arg: unknown, range: ByteRange | undefined): CallRequest {
  return {
    route,
    host: 'content',
    path: pathOfRoute(route),
    headers: {
      'dropbox-api-arg': headerJson(arg),
      // A compressing proxy would take away the length.
      'accept-encoding': 'identity',
      ...(range && { range: `bytes=${range.start}-${range.end - 1}` }),
    },
  };
}

/**
 * An answer's JSON as the type that the wire promises. The promise is the service's: whoever reads a
 * value checks what it depends on. Throws `SyntaxError`.
 */
export function parsed<T>(text: string): T {
  return JSON.parse(text);
}

/** For calls whose result is `null`. Any other text at 200 is not the service's: a proxy's page, say. */
export function readNull({ text }: { readonly text: string }): undefined {
  if (parsed<unknown>(text) !== null) throw new TypeError('something, where null should be');
}

function pathOfRoute(route: string): string {
  return `/2/${route}`;
}
