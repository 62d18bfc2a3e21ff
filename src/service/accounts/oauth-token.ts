import { json } from '../answers.ts';
import type { Answer, Exchange } from '../exchange.ts';
import { NoSuchCall } from '../failures.ts';
import type { Rooms } from '../route.ts';
import { ACCESS_TOKEN_LIFETIME_SECONDS } from './tokens.ts';

export const TOKEN_PATH = '/oauth2/token';

/** Five short parameters; a longer body is no token request. */
const BODY_MAX_BYTES = 64 * 1024;

/** 400 with OAuth's own two fields (RFC 6749 §5.2). */
class OAuthRefusal extends Error {
  override readonly name = 'OAuthRefusal';

  constructor(
    readonly error:
      | 'invalid_request'
      | 'invalid_client'
      | 'invalid_grant'
      | 'invalid_scope'
      | 'unsupported_grant_type',
    description: string,
  ) {
    super(description);
  }
}

/** `POST /oauth2/token`: a new access token for a refresh token. Other grants are not served yet. */
export async function answerTokenRequest(exchange: Exchange, rooms: Rooms): Promise<Answer> {
  if (exchange.request.method !== 'POST')
    throw new NoSuchCall(405, 'Only POST is a method of /oauth2/token.', { allow: 'POST' });
  // RFC 6749 §5.1: no cache may keep a token.
  const headers = { 'cache-control': 'no-store', pragma: 'no-cache' };
  try {
    return json(200, await tokenFor(exchange, rooms), headers);
  } catch (error) {
    if (!(error instanceof OAuthRefusal)) throw error;
    return json(400, { error: error.error, error_description: error.message }, headers);
  }
}

async function tokenFor(exchange: Exchange, { tokens, clock }: Rooms): Promise<object> {
  const given = await parametersOf(exchange);
  const grant = given.get('grant_type');
  if (grant === undefined) throw new OAuthRefusal('invalid_request', 'missing required field "grant_type"');
  if (grant !== 'refresh_token')
    throw new OAuthRefusal('unsupported_grant_type', 'grant_type must be "refresh_token"');
  const unknown = [...given.keys()].find((name) => !KNOWN.includes(name));
  if (unknown !== undefined)
    throw new OAuthRefusal('invalid_request', `unknown field ${JSON.stringify(unknown)}`);
  const refreshToken = given.get('refresh_token');
  if (!refreshToken) throw new OAuthRefusal('invalid_request', 'missing required field "refresh_token"');
  const app = appOf(exchange, given);
  if (!tokens.isApp(app.key, app.secret))
    throw new OAuthRefusal('invalid_client', 'Invalid client_id or client_secret');
  const scopes = given.get('scope')?.split(' ').filter(Boolean);
  const issued = tokens.refresh(clock.now(), { refreshToken, appKey: app.key, ...(scopes && { scopes }) });
  if (issued === undefined) throw new OAuthRefusal('invalid_grant', 'refresh token is invalid or revoked');
  if (issued === 'scope') throw new OAuthRefusal('invalid_scope', 'scope is more than was granted');
  return {
    access_token: issued.token,
    token_type: 'bearer',
    expires_in: ACCESS_TOKEN_LIFETIME_SECONDS,
    scope: issued.scopes.join(' '),
  };
}

const KNOWN = ['grant_type', 'refresh_token', 'client_id', 'client_secret', 'scope'];

/** From the query and from a form body alike: the official JavaScript SDK puts all of it in the query. */
async function parametersOf(exchange: Exchange): Promise<Map<string, string>> {
  const chunks: Uint8Array[] = [];
  let sizeBytes = 0;
  for await (const chunk of exchange.body()) {
    sizeBytes += chunk.length;
    if (sizeBytes > BODY_MAX_BYTES) throw new OAuthRefusal('invalid_request', 'the body is too large');
    chunks.push(chunk);
  }
  // What is in another form may hold secrets, and must not come back as the name of an unknown field.
  const type = exchange.request.headers['content-type'] ?? '';
  if (sizeBytes > 0 && !/^application\/x-www-form-urlencoded\b/i.test(type))
    throw new OAuthRefusal('invalid_request', 'the body must be application/x-www-form-urlencoded');
  const form = new URLSearchParams(Buffer.concat(chunks).toString('utf8'));
  const given = new Map<string, string>();
  for (const [name, value] of [...exchange.query, ...form]) {
    if (given.has(name))
      throw new OAuthRefusal('invalid_request', `field ${JSON.stringify(name)} given twice`);
    given.set(name, value);
  }
  return given;
}

function appOf(exchange: Exchange, given: ReadonlyMap<string, string>): { key: string; secret: string } {
  const basic = /^basic[ \t]+(\S+)$/i.exec(exchange.request.headers.authorization ?? '')?.[1];
  if (basic === undefined)
    return { key: given.get('client_id') ?? '', secret: given.get('client_secret') ?? '' };
  const doubled = ['client_id', 'client_secret'].find((name) => given.has(name));
  if (doubled) throw new OAuthRefusal('invalid_request', `unknown field "${doubled}"`);
  const [key = '', ...secret] = Buffer.from(basic, 'base64').toString('utf8').split(':');
  return { key, secret: secret.join(':') };
}
