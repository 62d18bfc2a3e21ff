import type { App, Apps } from '../accounts/apps.ts';
import type { Challenge } from '../accounts/codes.ts';
import { OAuthRefusal, oneOf, refuseUnknown, required, withoutRepeats } from './parameters.ts';

/** A checked request of an app to an account: `GET /oauth2/authorize` (RFC 6749 §4.1.1 and §4.2.1). */
export interface AuthorizationRequest {
  readonly app: App;
  /** `token` returns an access token at once, in the URL's fragment. */
  readonly responseType: 'code' | 'token';
  /** Absent: the code is shown, and the owner copies it. */
  readonly redirectUri?: string;
  readonly state?: string;
  readonly isOffline: boolean;
  readonly challenge?: Challenge;
  /** Whether to ask for consent even if it was given before. */
  readonly mustReapprove: boolean;
  /** Whether to ask for the password even if the user is signed in. */
  readonly mustSignIn: boolean;
}

/** Receiver of the answer: the app, or the person at the screen where the app's address is not safe. */
export interface ReturnAddress {
  readonly redirectUri: string;
  readonly state?: string;
  /** Whether the answer goes into the fragment, which browsers do not send on. */
  readonly inFragment: boolean;
}

/** A refused request, and the address that gets the error. */
export interface RefusedRequest {
  readonly refusal: OAuthRefusal;
  /** `undefined`: the app or its address is not known to be valid, so the browser is not redirected. */
  readonly returnTo: ReturnAddress | undefined;
}

const BOOLEAN = ['false', 'true'] as const;

/**
 * The real service's parameters without `scope`, because an app's scopes are chosen where it is registered. Parameters
 * about the look of the pages or the kind of account are accepted and ignored.
 */
const KNOWN = [
  'client_id',
  'response_type',
  'redirect_uri',
  'state',
  'token_access_type',
  'code_challenge',
  'code_challenge_method',
  'force_reapprove',
  'force_reauthentication',
  'disable_signup',
  'locale',
  'require_role',
];

/** Maximum length of `state`, in bytes, as at the real service. */
const STATE_BYTES_MAX = 2000;

/** Parses the request in a URL's query. */
export async function parseAuthorization(
  query: URLSearchParams,
  apps: Apps,
): Promise<AuthorizationRequest | RefusedRequest> {
  let returnTo: ReturnAddress | undefined;
  try {
    const [app, redirectUri] = await partiesOf(query, apps);
    returnTo = redirectUri === undefined ? undefined : returnAddress(query, redirectUri);
    return requestOf(query, app, redirectUri);
  } catch (error) {
    if (!(error instanceof OAuthRefusal)) throw error;
    return { refusal: error, returnTo };
  }
}

/** Returns the app and its redirect URI. Until both are known to be valid, the answer must not leave this service. */
async function partiesOf(query: URLSearchParams, apps: Apps): Promise<[App, string | undefined]> {
  const given = withoutRepeats(
    ['client_id', 'redirect_uri'].flatMap((name) =>
      query.getAll(name).map((value) => [name, value] as const),
    ),
  );
  const app = await apps.withKey(required(given, 'client_id'));
  if (!app) throw new OAuthRefusal('invalid_request', 'client_id: no app has this key');
  const redirectUri = given.get('redirect_uri');
  if (redirectUri !== undefined && !app.redirectUris.includes(redirectUri))
    throw new OAuthRefusal(
      'invalid_request',
      `redirect_uri ${JSON.stringify(redirectUri)} is not registered for the app ${app.name}`,
    );
  return [app, redirectUri];
}

function returnAddress(query: URLSearchParams, redirectUri: string): ReturnAddress {
  const [state, more] = query.getAll('state').filter(Boolean);
  const isGood = state !== undefined && more === undefined && Buffer.byteLength(state) <= STATE_BYTES_MAX;
  return {
    redirectUri,
    inFragment: query.get('response_type') === 'token',
    ...(isGood && { state }),
  };
}

function requestOf(query: URLSearchParams, app: App, redirectUri: string | undefined): AuthorizationRequest {
  const given = withoutRepeats(query);
  refuseUnknown(given, KNOWN);
  const responseType = responseTypeOf(given, redirectUri);
  const state = given.get('state');
  if (state !== undefined && Buffer.byteLength(state) > STATE_BYTES_MAX)
    throw new OAuthRefusal('invalid_request', `state must be at most ${STATE_BYTES_MAX} bytes`);
  const accessType = oneOf(given, 'token_access_type', ['online', 'offline', 'legacy']);
  const challenge = challengeOf(given);
  if (responseType === 'token' && (challenge || accessType === 'offline'))
    throw new OAuthRefusal(
      'invalid_request',
      'code_challenge and token_access_type "offline" need response_type "code"',
    );
  if (app.scopes.length === 0)
    throw new OAuthRefusal('invalid_scope', 'No scope requested can be granted for this app.');
  return {
    app,
    responseType,
    isOffline: accessType === 'offline',
    mustReapprove: oneOf(given, 'force_reapprove', BOOLEAN) === 'true',
    mustSignIn: oneOf(given, 'force_reauthentication', BOOLEAN) === 'true',
    ...(redirectUri !== undefined && { redirectUri }),
    ...(state !== undefined && { state }),
    ...(challenge && { challenge }),
  };
}

function responseTypeOf(
  given: ReadonlyMap<string, string>,
  redirectUri: string | undefined,
): AuthorizationRequest['responseType'] {
  const type = required(given, 'response_type');
  if (type !== 'code' && type !== 'token')
    throw new OAuthRefusal('unsupported_response_type', 'response_type must be "code" or "token"');
  if (type === 'token' && redirectUri === undefined) required(given, 'redirect_uri');
  return type;
}

/** RFC 7636 §4.2: 43 to 128 characters; the length of a SHA-256 in base64url is 43. */
const PLAIN_CHALLENGE = /^[\w.~-]{43,128}$/;
const S256_CHALLENGE = /^[\w-]{43}$/;

function challengeOf(given: ReadonlyMap<string, string>): Challenge | undefined {
  const value = given.get('code_challenge');
  const method = oneOf(given, 'code_challenge_method', ['plain', 'S256']);
  if (value === undefined && !given.has('code_challenge_method')) return undefined;
  const pattern = method === 'S256' ? S256_CHALLENGE : PLAIN_CHALLENGE;
  if (!pattern.test(value ?? ''))
    throw new OAuthRefusal(
      'invalid_request',
      method === 'S256'
        ? 'code_challenge must be a SHA-256 in base64url without padding: 43 characters'
        : 'code_challenge must be 43 to 128 characters of A-Z, a-z, 0-9, "-", ".", "_" and "~"',
    );
  return { method, value: value ?? '' };
}
