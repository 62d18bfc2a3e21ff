import type {
  AuthorizationResponseError,
  ClientAuth,
  Configuration,
  ResponseBodyError,
  ServerMetadata,
} from 'openid-client';

type Library = typeof import('openid-client');

/** How long the provider has for each answer, in seconds, if nothing else is said. */
const ANSWER_SECONDS = 15;

/** Maximum length of what the log quotes of a provider, in characters. */
const LOGGED_MAX = 200;

/** Maximum length of a user name, in characters. */
const NAME_MAX = 200;

/** davgate as a client of an OpenID Connect provider. */
export interface OidcClient {
  /** What the provider calls itself. */
  readonly issuer: string;
  readonly clientId: string;
  /** `undefined` for a public client. */
  readonly clientSecret: string | undefined;
  readonly scope: string;
  /** The claim with the name of the user. */
  readonly userClaim: string;
  /** How long the provider has for each answer, in seconds. */
  readonly answerSeconds?: number;
}

/** What ties the provider's answer to one sign-in of one browser. */
export interface OidcChecks {
  readonly redirectUri: string;
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
}

/**
 * Why there is no user name. `away`: the provider does not answer. `denied`: the person or the provider declined.
 * `expired`: the sign-in is too old or was used before, or the browser brings no answer of the provider. `unverified`: the
 * e-mail address is not confirmed. `failed`: everything else, as an answer that is not valid.
 */
export type OidcProblem = 'away' | 'denied' | 'expired' | 'unverified' | 'failed';

/** A sign-in at the provider has failed. `message` is for the log and contains no secret. */
export class OidcError extends Error {
  override readonly name = 'OidcError';

  constructor(
    readonly problem: OidcProblem,
    message: string,
  ) {
    super(message);
  }
}

/** The library, loaded at the first sign-in, and the provider as it describes itself. */
interface Discovered {
  readonly library: Library;
  readonly configuration: Configuration;
}

/** The OpenID Connect provider, asked for the names of users (authorization code flow with PKCE, state and nonce). */
export class OidcProvider {
  readonly #client: OidcClient;
  #discovered: Promise<Discovered> | undefined;

  constructor(client: OidcClient) {
    this.#client = client;
  }

  /** Returns the address at which a browser signs in. Throws `OidcError`. */
  signInAddress({ redirectUri, state, nonce, verifier }: OidcChecks): Promise<string> {
    return this.#ask(async ({ library, configuration }) => {
      const { href } = library.buildAuthorizationUrl(configuration, {
        scope: this.#client.scope,
        redirect_uri: redirectUri,
        state,
        nonce,
        code_challenge: await library.calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
      });
      return href;
    });
  }

  /** Returns the name of the user with whom the provider has sent the browser back. Throws `OidcError`. */
  userName(query: URLSearchParams, { redirectUri, state, nonce, verifier }: OidcChecks): Promise<string> {
    return this.#ask(async ({ library, configuration }) => {
      const metadata = configuration.serverMetadata();
      const url = new URL(`${redirectUri}?${answerIn(query, metadata)}`);
      const checks = { expectedState: state, expectedNonce: nonce, pkceCodeVerifier: verifier };
      const tokens = await library.authorizationCodeGrant(configuration, url, checks);
      const claims = tokens.claims();
      // Some providers tell no more than the subject in the token itself, or not whether an address is verified.
      const isEnough = !claims || this.#wantedClaims().every((claim) => claim in claims);
      if (isEnough || metadata.userinfo_endpoint === undefined) return this.#nameIn(claims ?? {});
      const more = await library.fetchUserInfo(configuration, tokens.access_token, claims.sub);
      return this.#nameIn({ ...claims, ...more });
    });
  }

  /** Throws `OidcError`. */
  async #ask<T>(question: (discovered: Discovered) => Promise<T>): Promise<T> {
    const discovered = await this.#discover();
    try {
      return await question(discovered);
    } catch (error) {
      if (isOutdated(error)) this.#discovered = undefined;
      throw failureOf(error, discovered.library);
    }
  }

  #wantedClaims(): readonly string[] {
    const { userClaim } = this.#client;
    return userClaim === 'email' ? [userClaim, 'email_verified'] : [userClaim];
  }

  /** Throws `OidcError`. */
  #nameIn(claims: Readonly<Record<string, unknown>>): string {
    const { userClaim } = this.#client;
    const name = claims[userClaim];
    if (typeof name !== 'string' || name === '' || name.length > NAME_MAX || /[:\p{Cc}]/u.test(name))
      throw new OidcError(
        'failed',
        `the claim ${userClaim} ${name === undefined ? 'is missing' : 'is not a user name'}; choose another with oidc-user-claim, or add its scope to oidc-scope`,
      );
    // Providers that never say it are believed.
    if (userClaim === 'email' && String(claims['email_verified']) === 'false')
      throw new OidcError('unverified', `the e-mail address ${name} is not verified`);
    return name.normalize('NFC');
  }

  /** Asks the provider about itself, once; again after it has failed. Throws `OidcError`. */
  #discover(): Promise<Discovered> {
    this.#discovered ??= discover(this.#client).catch((error) => {
      this.#discovered = undefined;
      throw error;
    });
    return this.#discovered;
  }
}

async function discover({ issuer, clientId, clientSecret, ...client }: OidcClient): Promise<Discovered> {
  const library = await import('openid-client');
  const url = new URL(issuer);
  const execute = [library.enableNonRepudiationChecks];
  // Only a provider on this machine may have such an address.
  if (url.protocol === 'http:') execute.push(library.allowInsecureRequests);
  const authentication = clientSecret === undefined ? library.None() : secretSender(library, clientSecret);
  try {
    const options = { execute, timeout: client.answerSeconds ?? ANSWER_SECONDS };
    const configuration = await library.discovery(url, clientId, undefined, authentication, options);
    return { library, configuration };
  } catch (error) {
    throw failureOf(error, library);
  }
}

/** Sends the secret in the way that the provider takes; most take both, and all of them Basic if they name none. */
function secretSender(library: Library, secret: string): ClientAuth {
  return (server, ...request) => {
    const ways = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic'];
    const isBasic = ways.includes('client_secret_basic');
    const send = isBasic ? library.ClientSecretBasic(secret) : library.ClientSecretPost(secret);
    return send(server, ...request);
  };
}

/** The parameters with which a provider sends a browser back (RFC 6749 §4.1.2, RFC 9207 §2). */
const ANSWER = ['state', 'code', 'error', 'error_description', 'iss'];

/** Returns the provider's answer. Throws `OidcError` for what a browser brings and no provider says. */
function answerIn(query: URLSearchParams, provider: ServerMetadata): URLSearchParams {
  const answer = new URLSearchParams();
  for (const name of ANSWER) {
    const value = query.get(name);
    if (value) answer.set(name, value);
  }
  const isNamed = answer.has('iss') || provider.authorization_response_iss_parameter_supported;
  if (isNamed && answer.get('iss') !== provider.issuer)
    throw new OidcError('expired', 'the browser has come back with the "iss" of another provider, or none');
  if (!answer.has('code') && !answer.has('error'))
    throw new OidcError('expired', 'the browser has come back without a code and without an error');
  return answer;
}

function failureOf(error: unknown, library: Library): OidcError {
  if (error instanceof OidcError) return error;
  return new OidcError(problemOf(error, library), reasonOf(error, library));
}

/** Whether the provider says in the terms of OAuth that it refuses something (RFC 6749 §4.1.2.1 and §5.2). */
function isRefusal(
  error: unknown,
  library: Library,
): error is AuthorizationResponseError | ResponseBodyError {
  return error instanceof library.AuthorizationResponseError || error instanceof library.ResponseBodyError;
}

function problemOf(error: unknown, library: Library): OidcProblem {
  if (error instanceof library.AuthorizationResponseError) {
    if (error.error === 'access_denied') return 'denied';
    return error.error === 'temporarily_unavailable' ? 'away' : 'failed';
  }
  if (error instanceof library.ResponseBodyError) {
    if (error.error === 'invalid_grant') return 'expired';
    return error.status >= 500 ? 'away' : 'failed';
  }
  if (!(error instanceof Error)) return 'failed';
  const { cause } = error;
  if (cause instanceof Response) return cause.status >= 500 ? 'away' : 'failed';
  return isUnreachable(error) ? 'away' : 'failed';
}

/** Codes of errors in a token, its signature or the choice of its key. */
const INVALID: ReadonlySet<unknown> = new Set(['OAUTH_INVALID_RESPONSE', 'OAUTH_KEY_SELECTION_FAILED']);

/**
 * Whether the provider may have other addresses or keys by now than it has described. A browser can bring other errors as
 * often as it likes.
 */
function isOutdated(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const isInvalid = 'code' in error && INVALID.has(error.code);
  return isInvalid || isUnreachable(error) || error.cause instanceof Response;
}

/** Whether the connection has failed, as `fetch` says it, or the answer took too long. */
function isUnreachable(error: Error): boolean {
  const isCut = error instanceof TypeError && error.cause instanceof Error;
  return isCut || ('code' in error && error.code === 'OAUTH_TIMEOUT');
}

/** Returns what the library says, without the tokens and claims that it attaches to its errors. */
function reasonOf(error: unknown, library: Library): string {
  if (isRefusal(error, library))
    return `${error.error}: ${error.error_description ?? 'no reason given'}`.slice(0, LOGGED_MAX);
  const parts: string[] = [];
  let cause = error;
  for (; cause instanceof Error; cause = cause.cause) parts.push(cause.message);
  if (cause instanceof Response) parts.push(`${cause.url} answered ${cause.status}`);
  return parts.join(': ').slice(0, LOGGED_MAX);
}
