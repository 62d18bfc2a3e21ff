import type { ByteRange } from '../util/ranges.ts';
import type { Host, HttpRequest } from './http.ts';

/** A call without its token. */
export interface CallRequest extends HttpRequest {
  /** Like `files/get_metadata`. */
  readonly route: string;
  /** The entries of a batch of commits as JSON texts, if other entries may be added to it. */
  readonly entries?: readonly string[];
  /** Whether the call throws `TurnTaken` instead of waiting for the commits of other gateways. */
  readonly yields?: boolean;
}

/** Returns an RPC-style request, with the argument as its body; `undefined` for a route without an argument. */
export function rpcRequest(route: string, arg: unknown, host: Host = 'base'): CallRequest {
  return {
    route,
    host,
    path: pathOfRoute(route),
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(arg ?? null),
  };
}

/** Returns an RPC-style request that may move or remove many files. */
export function slowRpcRequest(route: string, arg: unknown): CallRequest {
  return { ...rpcRequest(route, arg), answerTimeout: 'slow' };
}

/** Time limit of a commit, in ms: large files and batches take longer than an entry, and clients wait for about a minute. */
export const COMMIT_TIMEOUT = { ms: 50_000 };

/** Returns a content-upload request, with the argument as a header and the bytes as its body. */
export function uploadRequest(route: string, arg: unknown, bytes: Uint8Array): CallRequest {
  return {
    route,
    host: 'content',
    path: pathOfRoute(route),
    headers: { 'content-type': 'application/octet-stream', 'dropbox-api-arg': headerJson(arg) },
    body: bytes,
  };
}

/** Returns a content-download request, without a body. The result comes as a header. */
export function downloadRequest(route: string, arg: unknown, range: ByteRange | undefined): CallRequest {
  return {
    route,
    host: 'content',
    path: pathOfRoute(route),
    headers: {
      'dropbox-api-arg': headerJson(arg),
      // A proxy that compresses would remove the length.
      'accept-encoding': 'identity',
      ...(range && { range: `bytes=${range.start}-${range.end - 1}` }),
    },
  };
}

/**
 * Parses an answer's JSON as the type that the API documents. The type is not verified: callers check the fields that
 * they depend on. Throws `SyntaxError`.
 */
export function parsed<T>(text: string): T {
  return JSON.parse(text);
}

/** Reads the answer of a call with the result `null`. Any other text comes from another server, for example a proxy. */
export function readNull({ text }: { readonly text: string }): undefined {
  if (parsed<unknown>(text) !== null) throw new TypeError('an answer other than null');
}

function pathOfRoute(route: string): string {
  return `/2/${route}`;
}

/** Returns JSON for a header, with every UTF-16 unit from DEL up as `\uXXXX` (`Dropbox-API-Arg`). */
export function headerJson(value: unknown): string {
  return JSON.stringify(value).replace(/[\u007f-\uffff]/g, escapeUnit);
}

/** Parses a `Dropbox-API-Result` header, escaped or as raw UTF-8. Throws `SyntaxError`. */
export function parseHeaderJson(header: string): unknown {
  // Each byte of a header is one character: raw UTF-8 must be decoded.
  return JSON.parse(Buffer.from(header, 'latin1').toString('utf8'));
}

function escapeUnit(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
