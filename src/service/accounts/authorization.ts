import type { HttpRequest } from '../../util/http-messages.ts';
import { BadCall, failure, unauthorized } from '../api/failures.ts';
import type { ApiCaller, Route, RouteAuth } from '../api/route.ts';
import type { ServiceDeps } from '../deps.ts';
import { inHome } from './accounts.ts';
import type { Scope } from './scopes.ts';

/** The characters of a bearer token (RFC 6750 §2.1). */
const TOKEN = /^[A-Za-z0-9._~+/-]+=*$/;

/**
 * Returns the calling user; `undefined` for an app or nobody. Throws `BadCall` (400) for a missing or malformed
 * authorization and `ApiRefusal` (401) for one that is not valid here.
 */
export async function authorize(
  request: HttpRequest,
  query: URLSearchParams,
  route: Route,
  deps: ServiceDeps,
): Promise<ApiCaller | undefined> {
  const given = authorizationIn(request, query);
  if (route.auth === 'none') {
    if (given) throw new BadCall('This function must be called without HTTP header "Authorization".');
    return undefined;
  }
  if (!given) throw new BadCall('Must provide HTTP header "Authorization" or URL parameter "authorization".');
  const scheme = given.scheme.toLowerCase();
  if (scheme === 'basic' && route.auth !== 'user') return await checkApp(given, route, deps);
  if (scheme === 'bearer' && route.auth !== 'app') return await userOf(request, given, route, deps);
  throw wrongScheme(given, route.auth);
}

interface Given {
  /** Place of the credentials in the request, for an error message. */
  readonly place: string;
  readonly scheme: string;
  readonly credentials: string;
}

function authorizationIn(request: HttpRequest, query: URLSearchParams): Given | undefined {
  const header = request.headers.authorization;
  const value = header ?? query.get('authorization');
  if (value === null) return undefined;
  const place = header === undefined ? 'URL parameter "authorization"' : 'HTTP header "Authorization"';
  const [, scheme = '', credentials = ''] = /^(\S*)[ \t]*(.*)$/.exec(value.trim()) ?? [];
  return { place, scheme, credentials };
}

function wrongScheme({ place, scheme }: Given, auth: RouteAuth): BadCall {
  // The scheme may be a token without a scheme: show only known words, never a secret.
  const shown = /^(bearer|basic)$/i.test(scheme) ? scheme : '…';
  const expected = {
    user: '"Bearer …"',
    app: '"Basic …"',
    'app-or-user': '"Bearer …" or "Basic …"',
    none: '',
  };
  return new BadCall(`Invalid authorization value in ${place}: "${shown}". Expecting ${expected[auth]}.`);
}

async function userOf(
  request: HttpRequest,
  given: Given,
  route: Route,
  deps: ServiceDeps,
): Promise<ApiCaller> {
  const token = given.credentials;
  if (token === '') throw wrongScheme(given, route.auth);
  if (!TOKEN.test(token))
    throw new BadCall(
      `Invalid authorization value in ${given.place}: The given OAuth 2 access token is malformed.`,
    );
  const bearer = await deps.tokens.bearer(deps.clock.now(), token);
  if (!bearer) throw unauthorized(failure('invalid_access_token'));
  if (bearer.expired) throw unauthorized(failure('expired_access_token'));
  checkAppScope(bearer.appScopes, route);
  if (route.scope && !bearer.scopes.includes(route.scope))
    throw unauthorized(failure('missing_scope', { required_scope: route.scope }));
  refuseTeamHeaders(request);
  const account = inHome(await deps.withHome(bearer.account));
  const owner = { namespace: account.namespace, account: account.id, app: bearer.appKey };
  return { account, token, owner };
}

/** Checks app authentication: key and secret (RFC 7617). */
async function checkApp({ credentials }: Given, route: Route, { apps }: ServiceDeps): Promise<undefined> {
  const { key, secret } = basicCredentials(credentials);
  const app = (await apps.isSecret(key, secret)) ? await apps.withKey(key) : undefined;
  if (!app) throw unauthorized(failure('invalid_access_token'));
  checkAppScope(app.scopes, route);
}

/** Returns the two halves of the text after `Basic`. */
export function basicCredentials(encoded: string): { readonly key: string; readonly secret: string } {
  const [key = '', ...secret] = Buffer.from(encoded, 'base64').toString('utf8').split(':');
  return { key, secret: secret.join(':') };
}

/** Throws if the app does not have the scope: its tokens cannot have more than it has. */
function checkAppScope(scopes: readonly Scope[], { scope }: Route): void {
  if (scope === undefined || scopes.includes(scope)) return;
  throw new BadCall(
    `Your app is not permitted to access this endpoint because it does not have the required scope '${scope}'. The owner of the app can enable the scope for the app.`,
  );
}

/** Refuses headers that select a team member: this service has no teams. */
function refuseTeamHeaders(request: HttpRequest): void {
  if (request.headers['dropbox-api-select-user'] !== undefined)
    throw unauthorized(failure('invalid_select_user'));
  if (request.headers['dropbox-api-select-admin'] !== undefined)
    throw unauthorized(failure('invalid_select_admin'));
}
