import { ageMs, type Clock, type Instant, instantIn, LONG_AGO, momentNow } from '../util/clock.ts';
import type { Meter } from '../util/meter.ts';
import { SingleFlight } from '../util/single-flight.ts';
import type { OAuthError, TokenResult } from '../wire/account.ts';
import { type AccessToken, counted, type Tokens } from './caller.ts';
import { ApiError } from './errors.ts';
import { CallFailure, failureOfAnswer, failureOfJunk, failureOfLoss } from './failure.ts';
import type { HttpAnswer, HttpRequest } from './http.ts';
import { LostConnection } from './lost-connection.ts';
import { parsed } from './request.ts';

/** A fixed access token, or a refresh token to get access tokens with (`oauth2/token`, grant `refresh_token`). */
export type Credentials =
  | { readonly token: string }
  | { readonly appKey: string; readonly appSecret?: string; readonly refreshToken: string };

/** The parts that a token source uses. `signal` is aborted when the client closes. */
export interface TokenDeps {
  readonly send: (request: HttpRequest, signal: AbortSignal) => Promise<HttpAnswer>;
  readonly clock: Clock;
  readonly meter: Meter;
  readonly signal: AbortSignal;
}

export function createTokens(credentials: Credentials, deps: TokenDeps): Tokens {
  if (!('token' in credentials)) return new RefreshedTokens(credentials, deps);
  // Checked here because the error of an invalid header would show the value.
  if (!/^[\x21-\x7e]+$/.test(credentials.token))
    throw new ApiError('unauthorized', 'the access token is empty or contains characters that no token has');
  const token = { value: credentials.token, at: momentNow(deps.clock), freshMs: Number.POSITIVE_INFINITY };
  return { current: async () => token, renew: async () => false };
}

/** How long before it expires a token is replaced, in ms, as in both official SDKs. */
const EARLY_MS = 5 * 60_000;

/** How long after an early refresh the next one may start, in ms. */
const EARLY_AGAIN_MS = 10_000;

const ROUTE = 'oauth2/token';

class RefreshedTokens implements Tokens {
  #issued: AccessToken | undefined;
  readonly #refreshes = new SingleFlight<typeof ROUTE, AccessToken>();
  #nextEarly: Instant = LONG_AGO;

  constructor(
    private readonly credentials: Exclude<Credentials, { readonly token: string }>,
    private readonly deps: TokenDeps,
  ) {}

  async current(signal: AbortSignal): Promise<AccessToken> {
    const issued = this.#issued;
    const { clock } = this.deps;
    const leftMs = issued ? issued.freshMs + EARLY_MS - ageMs(clock, issued.at) : 0;
    if (!issued || leftMs <= 0) return this.#refresh(signal);
    if (leftMs <= EARLY_MS && clock.instant() >= this.#nextEarly) {
      this.#nextEarly = instantIn(clock, EARLY_AGAIN_MS);
      // In the background: the old token is still valid, and if this fails a later call tries again.
      this.#refresh(this.deps.signal).catch(() => {});
    }
    return issued;
  }

  async renew(token: string, signal: AbortSignal): Promise<boolean> {
    if (this.#issued?.value === token) this.#issued = undefined;
    // Another call may have renewed it since `token` was sent.
    const next = this.#issued ?? (await this.#refresh(signal));
    return next.value !== token;
  }

  /** Refreshes the token, once for all callers that ask meanwhile. */
  #refresh(signal: AbortSignal): Promise<AccessToken> {
    const grant = (stop: AbortSignal) => counted(this.deps, ROUTE, stop, () => this.#grant(stop));
    return this.#refreshes.run(ROUTE, grant, signal);
  }

  async #grant(signal: AbortSignal): Promise<AccessToken> {
    const { appKey, appSecret, refreshToken } = this.credentials;
    const form = new URLSearchParams({
      grant_type: 'refresh_token',
      refresh_token: refreshToken,
      client_id: appKey,
      // Refresh tokens issued with PKCE come without a secret.
      ...(appSecret !== undefined && { client_secret: appSecret }),
    });
    const request: HttpRequest = {
      host: 'base',
      path: `/${ROUTE}`,
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: form.toString(),
    };
    const answer = await this.#send(request, signal);
    this.deps.meter.answered(answer.status);
    const { access_token: value, expires_in: seconds } = this.#read(answer);
    this.#issued = { value, at: momentNow(this.deps.clock), freshMs: seconds * 1000 - EARLY_MS };
    return this.#issued;
  }

  async #send(request: HttpRequest, signal: AbortSignal): Promise<HttpAnswer> {
    try {
      return await this.deps.send(request, signal);
    } catch (cause) {
      if (!(cause instanceof LostConnection)) throw cause;
      const failure = failureOfLoss(cause, ROUTE);
      // A second request for a token does no harm.
      throw new CallFailure(failure.reason, failure.error);
    }
  }

  #read(answer: HttpAnswer): TokenResult {
    if (answer.status === 429 || answer.status === 408 || answer.status >= 500) {
      const failure = failureOfAnswer(answer, ROUTE, this.deps.clock.now());
      throw new CallFailure(failure.reason, failure.error, { retryAfterMs: failure.retryAfterMs });
    }
    if (answer.status !== 200) throw refusedGrant(answer);
    try {
      const result = parsed<TokenResult>(answer.text);
      if (!/^[\x21-\x7e]+$/.test(result.access_token) || !(result.expires_in > 0))
        throw new TypeError('no usable access_token or expires_in');
      return result;
    } catch {
      // Without the cause, because a parser's message may quote the token.
      const failure = failureOfJunk(answer, ROUTE, undefined);
      throw new CallFailure(failure.reason, failure.error);
    }
  }
}

/** The error names of `oauth2/token` (RFC 6749 §5.2). */
const GRANT_ERRORS: readonly OAuthError['error'][] = [
  'invalid_request',
  'invalid_client',
  'invalid_grant',
  'unsupported_grant_type',
];

/** Returns the OAuth error that an answer of `oauth2/token` names, if there is one. */
export function grantErrorIn(answer: HttpAnswer): OAuthError['error'] | undefined {
  return GRANT_ERRORS.find((error) => answer.text.includes(`"${error}"`));
}

/** The message has only the error's fixed name, because its description may quote the request. */
function refusedGrant(answer: HttpAnswer): CallFailure {
  const name = grantErrorIn(answer) ?? `status ${answer.status}`;
  const message = `the storage service issued no access token for this app key, secret and refresh token (${name})`;
  return new CallFailure('refused', new ApiError('unauthorized', message, { summary: name }));
}
