import type { Answer, Exchange } from '../../http/exchange.ts';
import { basicCredentials } from '../accounts/authorization.ts';
import type { Exchanged } from '../accounts/codes.ts';
import { ACCESS_TOKEN_LIFETIME_SECONDS } from '../accounts/tokens.ts';
import { json } from '../api/answers.ts';
import { WrongMethod } from '../api/failures.ts';
import { formOf } from '../api/forms.ts';
import type { ServiceDeps } from '../deps.ts';
import { OAuthRefusal, refuseUnknown, required, withoutRepeats } from './parameters.ts';

/** The second path is from the API's first version; the Go SDK (rclone 1.60) still uses it. */
const TOKEN_PATHS = ['/oauth2/token', '/1/oauth2/token'];

export function isTokenPath(path: string): boolean {
  return TOKEN_PATHS.includes(path);
}

/** Maximum size of a token request, which has five short parameters, in bytes. */
const BODY_BYTES_MAX = 64 * 1024;

/** Answers `POST /oauth2/token`: exchanges an authorization code or a refresh token for tokens. */
export async function answerTokenRequest(exchange: Exchange, deps: ServiceDeps): Promise<Answer> {
  if (exchange.request.method !== 'POST') throw new WrongMethod('/oauth2/token accepts only POST.', ['POST']);
  // RFC 6749 §5.1: no cache may keep a token.
  const headers = { 'cache-control': 'no-store', pragma: 'no-cache' };
  try {
    return json(200, await tokenFor(exchange, deps), headers);
  } catch (error) {
    if (!(error instanceof OAuthRefusal)) throw error;
    return json(400, { error: error.error, error_description: error.message }, headers);
  }
}

type Parameters = ReadonlyMap<string, string>;

/** The app that requests tokens. */
interface OAuthClient {
  readonly key: string;
  /** Whether the app sent its secret; a public client has none. */
  readonly hasSecret: boolean;
}

async function tokenFor(exchange: Exchange, deps: ServiceDeps): Promise<object> {
  const given = await parametersOf(exchange);
  switch (required(given, 'grant_type')) {
    case 'authorization_code':
      return await tokenForCode(exchange, given, deps);
    case 'refresh_token':
      return await tokenForRefresh(exchange, given, deps);
    default:
      throw new OAuthRefusal(
        'unsupported_grant_type',
        'grant_type must be "authorization_code" or "refresh_token"',
      );
  }
}

/**
 * Parameters of a code's exchange. There is no `scope`, because it was decided when the code was made. The official
 * Python SDK also sends the `locale` of its flow, which is ignored.
 */
const OF_CODE = [
  'grant_type',
  'code',
  'redirect_uri',
  'code_verifier',
  'client_id',
  'client_secret',
  'locale',
];

async function tokenForCode(exchange: Exchange, given: Parameters, deps: ServiceDeps): Promise<object> {
  refuseUnknown(given, OF_CODE);
  const code = required(given, 'code');
  const client = await clientOf(exchange, given, deps);
  const verifier = given.get('code_verifier');
  if (!client.hasSecret && verifier === undefined) throw wrongClient();
  const redirectUri = given.get('redirect_uri');
  const exchanged = await deps.codes.exchange(deps.clock.now(), {
    code,
    appKey: client.key,
    hasSecret: client.hasSecret,
    ...(redirectUri !== undefined && { redirectUri }),
    ...(verifier !== undefined && { verifier }),
  });
  if (typeof exchanged === 'string') throw new OAuthRefusal('invalid_grant', CODE_PROBLEMS[exchanged]);
  return { ...tokenAnswer(exchanged), ...ownerOf(exchanged) };
}

const CODE_PROBLEMS = {
  code: "code doesn't exist or has expired",
  redirect_uri: 'redirect_uri mismatch',
  verifier: 'invalid code verifier',
} as const;

function ownerOf({ accountId, namespace, refreshToken }: Exchanged): object {
  return {
    ...(refreshToken !== undefined && { refresh_token: refreshToken }),
    // The legacy numeric account id; the account's home has the same one.
    uid: namespace,
    account_id: accountId,
  };
}

/** Refresh tokens are base64url. */
const REFRESH_TOKEN = /^[\w-]+$/;

const OF_REFRESH = ['grant_type', 'refresh_token', 'client_id', 'client_secret', 'scope'];

async function tokenForRefresh(exchange: Exchange, given: Parameters, deps: ServiceDeps): Promise<object> {
  refuseUnknown(given, OF_REFRESH);
  const refreshToken = required(given, 'refresh_token');
  if (!REFRESH_TOKEN.test(refreshToken))
    throw new OAuthRefusal('invalid_grant', 'refresh token is malformed');
  const { key: appKey, hasSecret } = await clientOf(exchange, given, deps);
  const scopes = given.get('scope')?.split(' ').filter(Boolean);
  const request = { refreshToken, appKey, hasSecret, ...(scopes && { scopes }) };
  const issued = await deps.tokens.refresh(deps.clock.now(), request);
  if (issued === undefined) throw new OAuthRefusal('invalid_grant', 'refresh token is invalid or revoked');
  if (issued === 'secret') throw wrongClient();
  if (issued === 'scope') throw new OAuthRefusal('invalid_scope', 'scope was not granted');
  return tokenAnswer(issued);
}

function tokenAnswer({ token, scopes }: { readonly token: string; readonly scopes: readonly string[] }) {
  return {
    access_token: token,
    token_type: 'bearer',
    expires_in: ACCESS_TOKEN_LIFETIME_SECONDS,
    scope: scopes.join(' '),
  };
}

function wrongClient(): OAuthRefusal {
  return new OAuthRefusal('invalid_client', 'Invalid client_id or client_secret');
}

/** Returns the app by its key. Throws if a secret is given and wrong. */
async function clientOf(exchange: Exchange, given: Parameters, { apps }: ServiceDeps): Promise<OAuthClient> {
  const { key, secret } = clientCredentials(exchange, given);
  const isKnown = secret === '' ? (await apps.withKey(key)) !== undefined : await apps.isSecret(key, secret);
  if (!isKnown) throw wrongClient();
  return { key, hasSecret: secret !== '' };
}

function clientCredentials(
  exchange: Exchange,
  given: Parameters,
): { readonly key: string; readonly secret: string } {
  const basic = /^basic[ \t]+(\S+)$/i.exec(exchange.request.headers.authorization ?? '')?.[1];
  if (basic === undefined)
    return { key: given.get('client_id') ?? '', secret: given.get('client_secret') ?? '' };
  const doubled = ['client_id', 'client_secret'].find((name) => given.has(name));
  if (doubled) throw new OAuthRefusal('invalid_request', `unknown field "${doubled}"`);
  return basicCredentials(basic);
}

/**
 * Returns the parameters of the query and of a form body: the official JavaScript SDK puts all of them in the query.
 */
async function parametersOf(exchange: Exchange): Promise<Parameters> {
  const form = await formOf(exchange, BODY_BYTES_MAX);
  if (!form) throw new OAuthRefusal('invalid_request', 'the body is too large');
  // A body of another type may contain secrets, which must not be echoed as the name of an unknown field.
  const type = exchange.request.headers['content-type'] ?? '';
  if (form.size > 0 && !/^application\/x-www-form-urlencoded\b/i.test(type))
    throw new OAuthRefusal('invalid_request', 'the body must be application/x-www-form-urlencoded');
  return withoutRepeats([...exchange.query, ...form]);
}
