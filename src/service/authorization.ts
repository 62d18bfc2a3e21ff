import type { IncomingMessage } from 'node:http';
import { BadCall, failure, unauthorized } from './failures.ts';
import type { Caller, Rooms, Route } from './route.ts';

/** The characters of a bearer token (RFC 6750 §2.1). */
const TOKEN = /^[A-Za-z0-9._~+/-]+=*$/;

/**
 * Who calls, and whether the token may call this function. Throws `BadCall` (400) for no or a malformed
 * authorization and `Refusal` (401) for a token that is no good here.
 */
export function authorize(
  request: IncomingMessage,
  query: URLSearchParams,
  route: Route,
  rooms: Rooms,
): Caller {
  const token = bearerToken(request, query);
  const bearer = rooms.tokens.bearer(rooms.clock.now(), token);
  if (!bearer) throw unauthorized(failure('invalid_access_token'));
  if (bearer.expired) throw unauthorized(failure('expired_access_token'));
  if (route.scope && !bearer.scopes.includes(route.scope))
    throw unauthorized(failure('missing_scope', { required_scope: route.scope }));
  refuseTeamHeaders(request);
  const account = rooms.accountWithId(bearer.accountId);
  const owner = { namespace: account.namespace, account: account.id, app: bearer.appKey };
  return { account, token, owner };
}

/** For functions that anyone may call: the service refuses those that come with a token after all. */
export function refuseAuthorization(request: IncomingMessage, query: URLSearchParams): void {
  if (request.headers.authorization !== undefined || query.has('authorization'))
    throw new BadCall('This function must be called without HTTP header "Authorization".');
}

function bearerToken(request: IncomingMessage, query: URLSearchParams): string {
  const header = request.headers.authorization;
  const value = header ?? query.get('authorization');
  const place = header === undefined ? 'URL parameter "authorization"' : 'HTTP header "Authorization"';
  if (value === null)
    throw new BadCall('Must provide HTTP header "Authorization" or URL parameter "authorization".');
  const [, scheme = '', token = ''] = /^(\S*)[ \t]*(.*)$/.exec(value.trim()) ?? [];
  if (scheme.toLowerCase() !== 'bearer' || token === '') {
    // A bare token may stand where the scheme should be: show only words that are no secret.
    const shown = /^(bearer|basic)$/i.test(scheme) ? scheme : '…';
    throw new BadCall(`Invalid authorization value in ${place}: "${shown}". Expecting "Bearer …".`);
  }
  if (!TOKEN.test(token))
    throw new BadCall(
      `Invalid authorization value in ${place}: The given OAuth 2 access token is malformed.`,
    );
  return token;
}

/** There are no teams here, so a token cannot act as another of its members. */
function refuseTeamHeaders(request: IncomingMessage): void {
  if (request.headers['dropbox-api-select-user'] !== undefined)
    throw unauthorized(failure('invalid_select_user'));
  if (request.headers['dropbox-api-select-admin'] !== undefined)
    throw unauthorized(failure('invalid_select_admin'));
}
