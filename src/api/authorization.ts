import { createHash, randomBytes } from 'node:crypto';
import type { Clock } from '../util/clock.ts';
import { silentMeter } from '../util/meter.ts';
import { ApiError } from './errors.ts';
import { CallFailure, failureOfAnswer, failureOfLoss } from './failure.ts';
import { Http, type HttpAnswer, type HttpRequest } from './http.ts';
import { LostConnection } from './lost-connection.ts';
import { parsed, rpcRequest } from './request.ts';
import { type Credentials, createTokens, grantErrorIn } from './token.ts';

/** Random bytes in a verifier: 64 make 86 characters, and 43 to 128 are allowed (RFC 7636 §4.1). */
const VERIFIER_BYTES = 64;

const TOKEN_ROUTE = 'oauth2/token';
const REVOKE_ROUTE = 'auth/token/revoke';

/** Proof that the program that exchanges a code also requested it (RFC 7636). */
export interface Proof {
  readonly verifier: string;
  /** The verifier's SHA-256, which need not be kept secret. */
  readonly challenge: string;
}

export function newProof(): Proof {
  const verifier = randomBytes(VERIFIER_BYTES).toString('base64url');
  return { verifier, challenge: createHash('sha256').update(verifier).digest('base64url') };
}

export interface AuthorizationRequest {
  readonly appKey: string;
  readonly challenge: string;
  /** Without it the service shows the code, and the owner copies it. */
  readonly redirectUri?: string | undefined;
  readonly state?: string | undefined;
}

/**
 * Returns the address of the page on which the owner of an account grants the app access until it is revoked. Sends no
 * `scope`: the app has the scopes that were chosen for it, and the service may refuse the parameter.
 */
export function authorizationUrl(authorizeUrl: string, request: AuthorizationRequest): string {
  const url = new URL(authorizeUrl);
  const { appKey, challenge, redirectUri, state } = request;
  const parameters = {
    client_id: appKey,
    response_type: 'code',
    token_access_type: 'offline',
    code_challenge: challenge,
    code_challenge_method: 'S256',
    redirect_uri: redirectUri,
    state,
  };
  for (const [name, value] of Object.entries(parameters))
    if (value !== undefined) url.searchParams.set(name, value);
  return url.href;
}

export interface CodeExchange {
  readonly code: string;
  readonly appKey: string;
  readonly verifier: string;
  /** The redirect address of the authorization request. */
  readonly redirectUri?: string | undefined;
}

/** The result of a code exchange. */
export interface Grant {
  readonly refreshToken: string;
  readonly accountId: string;
  /** `undefined` when the service does not list them. */
  readonly scopes: readonly string[] | undefined;
}

/** The authorization server and how to talk to it. */
export interface AuthorizationServer {
  /** Without `/oauth2/token`. */
  readonly apiUrl: string;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** `oauth2/token`, grant `authorization_code`. Throws `ApiError`, `unauthorized` for an invalid code. */
export function exchangeCode(server: AuthorizationServer, exchange: CodeExchange): Promise<Grant> {
  const { code, appKey, verifier, redirectUri } = exchange;
  const form = new URLSearchParams({
    grant_type: 'authorization_code',
    code,
    client_id: appKey,
    code_verifier: verifier,
    ...(redirectUri !== undefined && { redirect_uri: redirectUri }),
  });
  const request: HttpRequest = {
    host: 'base',
    path: `/${TOKEN_ROUTE}`,
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: form.toString(),
  };
  return withHttp(server, async (http) => {
    const answer = await sent(http, request, TOKEN_ROUTE, server.signal);
    if (answer.status !== 200) throw refusedCode(answer, server.clock.now());
    return grantIn(answer);
  });
}

/**
 * Whether the service knows an app: it looks for the app before it looks at the code. Throws `ApiError` when the service
 * does not answer.
 */
export async function isKnownApp(server: AuthorizationServer, appKey: string): Promise<boolean> {
  try {
    await exchangeCode(server, { code: 'none', appKey, verifier: newProof().verifier });
    return true;
  } catch (error) {
    if (!(error instanceof ApiError) || error.failure !== 'unauthorized') throw error;
    return error.details.summary === 'invalid_grant';
  }
}

/** The message has only the error's fixed name, because its description may quote the request. */
function refusedCode(answer: HttpAnswer, nowMs: number): ApiError {
  const name = grantErrorIn(answer);
  if (!name) return failureOfAnswer(answer, TOKEN_ROUTE, nowMs).error;
  const why =
    name === 'invalid_grant'
      ? 'the storage service refused the code, which can be used once, within minutes, and only in the login that asked for it; log in again'
      : 'the storage service refused the app: check the app key and the redirect address';
  return new ApiError('unauthorized', `${why} (${name})`, { summary: name });
}

/** Reads a grant. The messages quote nothing of the answer, because it contains tokens. */
function grantIn(answer: HttpAnswer): Grant {
  let result: Partial<Record<string, unknown>> | null;
  try {
    result = parsed(answer.text);
  } catch {
    result = null;
  }
  const { refresh_token: refreshToken, account_id: accountId, scope } = result ?? {};
  if (
    typeof refreshToken !== 'string' ||
    !/^[\x21-\x7e]+$/.test(refreshToken) ||
    typeof accountId !== 'string'
  )
    throw new ApiError('unavailable', 'the storage service issued no refresh token for the code');
  const scopes = typeof scope === 'string' ? scope.split(' ').filter((word) => word !== '') : undefined;
  return { refreshToken, accountId, scopes };
}

/**
 * `auth/token/revoke`: ends the refresh token and all access tokens from it. Returns whether it was still valid; throws
 * `ApiError` when that is unknown.
 */
export function revokeLogin(
  server: AuthorizationServer,
  credentials: Exclude<Credentials, { readonly token: string }>,
): Promise<boolean> {
  const { clock, signal } = server;
  return withHttp(server, async (http) => {
    const send = (request: HttpRequest, aborted: AbortSignal) => http.send(request, aborted);
    const tokens = createTokens(credentials, { send, clock, meter: silentMeter, signal });
    let token: string;
    try {
      token = (await tokens.current(signal)).value;
    } catch (failure) {
      if (!(failure instanceof CallFailure)) throw failure;
      if (failure.error.details.summary === 'invalid_grant') return false;
      throw failure.error;
    }
    const request = rpcRequest(REVOKE_ROUTE, undefined);
    const headers = { ...request.headers, authorization: `Bearer ${token}` };
    const answer = await sent(http, { ...request, headers }, REVOKE_ROUTE, signal);
    if (answer.status === 401) return false;
    if (answer.status !== 200) throw failureOfAnswer(answer, REVOKE_ROUTE, clock.now()).error;
    return true;
  });
}

async function withHttp<T>({ apiUrl }: AuthorizationServer, work: (http: Http) => Promise<T>): Promise<T> {
  const http = new Http({ base: apiUrl, content: apiUrl, notify: apiUrl });
  try {
    return await work(http);
  } finally {
    await http.close();
  }
}

async function sent(
  http: Http,
  request: HttpRequest,
  route: string,
  signal: AbortSignal,
): Promise<HttpAnswer> {
  try {
    return await http.send(request, signal);
  } catch (cause) {
    throw cause instanceof LostConnection ? failureOfLoss(cause, route).error : cause;
  }
}
