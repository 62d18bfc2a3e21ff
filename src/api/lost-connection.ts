import { errorCodeOf } from '../util/error-code.ts';

/** The connection was lost before the end of the answer. */
export class LostConnection extends Error {
  override readonly name = 'LostConnection';

  constructor(
    message: string,
    /** Whether the service may have received the request. */
    readonly mayHaveArrived: boolean,
    /** Whether a retry may succeed. It cannot after an untrusted certificate. */
    readonly passing: boolean,
    cause: unknown,
  ) {
    super(message, { cause });
  }
}

/** Error codes of connections that failed before the first byte was sent. */
const NEVER_SENT = new Set([
  'ECONNREFUSED',
  'EAI_AGAIN',
  'ENOTFOUND',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
]);

const UNTRUSTED = /CERT|^ERR_TLS|^UNABLE_TO_|^ERR_SSL|SIGNATURE/;

/** Returns the error of a connection that failed with `cause`. */
export function lostBy(cause: unknown): LostConnection {
  const code = errorCodeOf(cause);
  const untrusted = UNTRUSTED.test(code);
  const message = cause instanceof Error ? cause.message || code : String(cause);
  return new LostConnection(message, !untrusted && !NEVER_SENT.has(code), !untrusted, cause);
}

/** Returns the error of a body that brought only `bytes` in `ms` milliseconds. */
export function tooSlow(bytes: number, ms: number): Error {
  return new Error(`only ${bytes} bytes arrived in ${Math.round(ms / 1000)} s`);
}

/** Returns the error of a body whose connection was closed before its end. */
export function closedEarly(): Error {
  return new Error('the answer was closed before its end');
}
