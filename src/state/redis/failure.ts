import { ErrorReply } from '@redis/client';
import { errorCodeOf } from '../../util/error-code.ts';
import { StateUnavailable, StateUnwritable } from '../errors.ts';

/** Returns the typed error for a failure of Redis; `shownUrl` is redacted. Other errors stay unchanged. */
export function asStateError(error: unknown, shownUrl: string): unknown {
  if (error instanceof StateUnavailable || error instanceof StateUnwritable) return error;
  // A full Redis is treated like a full disk: writes fail, and everything else continues.
  if (error instanceof ErrorReply && FULL.test(error.message))
    return new StateUnwritable(shownUrl, 'its memory is full; raise maxmemory or free some', error);
  const reason = error instanceof ErrorReply ? replyReason(error.message) : connectionReason(error);
  return reason === undefined ? error : new StateUnavailable(shownUrl, reason, error);
}

/** Whether Redis may have executed the command that failed: its answer, even a refusal, did not arrive. */
export function isWithoutAnswer(error: unknown): boolean {
  return error instanceof StateUnavailable && !(error.cause instanceof ErrorReply);
}

/** Whether Redis refused a command because it is still loading its data after a start. */
export function isLoading(error: unknown): boolean {
  return error instanceof ErrorReply && LOADING.test(error.message);
}

/** Whether Redis or a Sentinel refused a client because it gave no password. */
export function isLoginWanted(error: unknown): boolean {
  return error instanceof ErrorReply && /^NOAUTH\b/.test(error.message);
}

/** Whether Redis does not know the script of a digest. */
export function isUnknownScript(error: unknown): boolean {
  return error instanceof ErrorReply && /^NOSCRIPT\b/.test(error.message);
}

const FULL = /^OOM\b/;
const LOADING = /^LOADING\b/;

const CHECK_LOGIN = 'check the user and password in the URL';

/** Answers of Redis, by their first word, that report a failure of Redis itself. */
const REPLIES: readonly (readonly [start: RegExp, reason: string])[] = [
  [/^NOAUTH\b/, `it wants a password; ${CHECK_LOGIN}`],
  [/^WRONGPASS\b|^ERR (invalid password|AUTH\b)/, `it refuses the password; ${CHECK_LOGIN}`],
  [/^NOPERM\b/, 'this user may not do all that is needed; give it the rights in docs/scaling.md'],
  [/^MISCONF\b/, 'it cannot write to its disk; check its disk and its log'],
  [/^READONLY\b/, 'it is a replica that takes no writes; give the address of the primary'],
  [LOADING, 'it is still loading its data; try again in a moment'],
  [/^BUSY\b/, 'it is busy with a long script; try again in a moment'],
  [/^MASTERDOWN\b/, 'it has lost its primary; check the replication'],
  [/^NOREPLICAS\b/, 'it has too few replicas to take writes; check them'],
  [/^(MOVED|ASK|CROSSSLOT)\b/, 'it is part of a cluster; write redis+cluster:// in the URL'],
  [/^CLUSTERDOWN\b/, 'some slots of the cluster have no primary; check its nodes'],
  [/^ERR This instance has cluster support disabled/, 'it is no cluster; write redis:// in the URL'],
  [/^ERR No such master/, 'its Sentinels know no primary of that name; correct the name in the URL'],
  [
    /^ERR (DB index|SELECT is not allowed)/,
    'it has no such database; correct the number at the end of the URL',
  ],
  [/^ERR max number of clients/, 'it takes no more connections; raise maxclients'],
  [/^ERR unknown command/, 'it is no Redis, or lacks commands that are needed; Redis 5 or newer will do'],
];

function replyReason(message: string): string | undefined {
  return REPLIES.find(([start]) => start.test(message))?.[1];
}

const UNKNOWN_AUTHORITY =
  'the authority of its certificate is not known; name a file with it in NODE_EXTRA_CA_CERTS';

const CODES: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens there; start Redis, or correct the address',
  ENOTFOUND: 'there is no host of that name; correct the address',
  EAI_AGAIN: 'the name of the host cannot be looked up now; check the network',
  ETIMEDOUT: 'the host does not answer; check the address and the network',
  EHOSTUNREACH: 'the host cannot be reached; check the address and the network',
  ENETUNREACH: 'the network cannot be reached; check the network',
  DEPTH_ZERO_SELF_SIGNED_CERT: UNKNOWN_AUTHORITY,
  SELF_SIGNED_CERT_IN_CHAIN: UNKNOWN_AUTHORITY,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: UNKNOWN_AUTHORITY,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: UNKNOWN_AUTHORITY,
  CERT_HAS_EXPIRED: 'its certificate has expired; renew it',
  ERR_TLS_CERT_ALTNAME_INVALID:
    'its certificate is for another host; give an address that the certificate names',
};

function connectionReason(error: unknown): string {
  const code = errorCodeOf(error);
  const known = CODES[code];
  if (known !== undefined) return known;
  // Messages of the client library and of TLS contain no part of the URL except the host.
  const said = error instanceof Error ? error.message || code : String(error);
  return `the connection failed (${said}); check that Redis runs and is reachable`;
}
