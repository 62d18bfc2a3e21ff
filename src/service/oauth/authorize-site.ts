import type { Answer, Exchange } from '../../http/exchange.ts';
import type { Log } from '../../util/log.ts';
import type { Account } from '../accounts/accounts.ts';
import { secondsOf, waitInWords } from '../accounts/guess-limits.ts';
import { scopeInWords } from '../accounts/scopes.ts';
import { ACCESS_TOKEN_LIFETIME_SECONDS } from '../accounts/tokens.ts';
import { formOf, setCookie } from '../api/forms.ts';
import type { ServiceDeps } from '../deps.ts';
import {
  AUTHORIZE_PAGE_POLICY,
  codePage,
  consentPage,
  noticePage,
  refusedPage,
  signInPage,
} from './authorize-page.ts';
import {
  type AuthorizationRequest,
  parseAuthorization,
  type RefusedRequest,
  type ReturnAddress,
} from './authorize-request.ts';
import { OAuthRefusal } from './parameters.ts';
import { type SignIn, signInTo } from './sign-in.ts';
import { formTokenOf, isFormToken, VISIT_COOKIE, type Visit, Visits } from './visits.ts';

export const AUTHORIZE_PATH = '/oauth2/authorize';

/** Maximum size of a form with an address, a password and a token, in bytes. */
const FORM_BYTES_MAX = 16 * 1024;

/**
 * Returns the handler of `/oauth2/authorize`: it asks the user to sign in and to consent, and redirects with the
 * answer.
 */
export function authorizeSiteOf(deps: ServiceDeps, log: Log): (exchange: Exchange) => Promise<Answer> {
  const visits = new Visits(deps);
  const signIn = signInTo({ ...deps, log });
  return async (exchange) => {
    const { method } = exchange.request;
    if (method !== 'GET' && method !== 'HEAD' && method !== 'POST')
      return page(405, noticePage('Not like this', 'This page is opened with GET.'), {
        allow: 'GET, HEAD, POST',
      });
    const request = await parseAuthorization(exchange.query, deps.apps);
    if ('refusal' in request) return refusedAnswer(request, method);
    const visit = await visits.of(exchange);
    const call = { deps, exchange, visits, signIn, request, visit, query: exchange.query.toString() };
    return method === 'POST' ? await answerForm(call) : await show(call);
  };
}

/** One authorization request and the browser that it comes from. */
interface AuthorizeCall {
  readonly deps: ServiceDeps;
  readonly exchange: Exchange;
  readonly visits: Visits;
  readonly signIn: SignIn;
  readonly request: AuthorizationRequest;
  readonly visit: Visit;
  /** The query that forms and the sign-in are bound to. */
  readonly query: string;
}

/** Returns the visitor's next page, or the redirect when no question is left. */
async function show(call: AuthorizeCall): Promise<Answer> {
  const { request, deps } = call;
  const account = signedIn(call);
  if (!account) return signInAnswer(call, 200);
  if (!(await deps.grants.mayLink(deps.clock.now(), request.app, account.id))) return fullAnswer(request);
  if (await isApproved(request, account, deps)) return await allow(call, account);
  return consentAnswer(call, account, 200);
}

/** Returns the account that has signed in, for this very request if it demands that. */
function signedIn({ request, visit, query }: AuthorizeCall): Account | undefined {
  return request.mustSignIn && visit.signedInFor !== query ? undefined : visit.account;
}

/**
 * Whether the owner has already consented to all this and is not asked again. Only for apps with an https redirect URI:
 * any program on a machine may take a loopback port or a custom scheme (RFC 8252 §8.6).
 */
async function isApproved(
  { app, redirectUri, mustReapprove, isOffline }: AuthorizationRequest,
  { id }: Account,
  deps: ServiceDeps,
) {
  if (mustReapprove || !redirectUri?.startsWith('https:')) return false;
  return await deps.grants.isGiven({ accountId: id, appKey: app.key, scopes: app.scopes }, isOffline);
}

async function answerForm(call: AuthorizeCall): Promise<Answer> {
  const { exchange, visits, visit, query, request } = call;
  // The browser sent no cookie with a cross-site request, and a new one would replace its cookie: a sign-out.
  if (exchange.request.headers['sec-fetch-site'] === 'cross-site')
    return page(403, noticePage('Not from there', 'Another site sent this form. Nothing was done.'));
  const form = await formOf(exchange, FORM_BYTES_MAX);
  if (!form || !isFormToken(visit, query, form.get('form_token') ?? '')) return staleAnswer(call);
  switch (form.get('action')) {
    case 'cancel':
      return cancelled(request);
    case 'sign-out':
      await visits.signOut(visit);
      return again(exchange);
    case 'allow': {
      const account = signedIn(call);
      return account ? await allow(call, account) : signInAnswer(call, 403);
    }
    default:
      return await trySignIn(call, form.get('email') ?? '', form.get('password') ?? '');
  }
}

/** Answers a form from another site, or from a browser without cookies. */
function staleAnswer(call: AuthorizeCall): Answer {
  const problem = 'This page has expired, or your browser blocks cookies. Try again.';
  const account = signedIn(call);
  return account ? consentAnswer(call, account, 403, problem) : signInAnswer(call, 403, { problem });
}

async function trySignIn(call: AuthorizeCall, email: string, password: string): Promise<Answer> {
  const { exchange, visits, visit, query, signIn } = call;
  const account = await signIn.check(email, password, exchange.address);
  if (account === 'wrong')
    return signInAnswer(call, 403, { email, problem: 'There is no account with this address and password.' });
  if ('retryAfterMs' in account)
    return signInAnswer(
      call,
      429,
      { email, problem: `Too many attempts. Try again in ${waitInWords(account)}.` },
      { 'retry-after': String(secondsOf(account)) },
    );
  return again(exchange, cookieOf(call, await visits.signIn(visit, account, query)));
}

function signInAnswer(
  call: AuthorizeCall,
  status: number,
  said: { readonly email?: string; readonly problem?: string } = {},
  headers: Readonly<Record<string, string>> = {},
): Answer {
  const { visit, query, request } = call;
  const formToken = formTokenOf(visit, query);
  const body = signInPage({ appName: request.app.name, formToken, ...said });
  return page(status, body, { ...cookieOf(call, visit), ...headers });
}

function consentAnswer(call: AuthorizeCall, account: Account, status: number, problem?: string): Answer {
  const { visit, query, request } = call;
  const { app, redirectUri, isOffline } = request;
  const body = consentPage({
    appName: app.name,
    formToken: formTokenOf(visit, query),
    accountName: `${account.givenName} ${account.surname}`.trim(),
    email: account.email,
    wishes: app.scopes.map((scope) => ({
      text: scopeInWords(scope),
      isGrave: scope === 'files.permanent_delete',
    })),
    isLasting: isOffline,
    ...(redirectUri !== undefined && { returnsTo: siteOf(redirectUri) }),
    ...(problem !== undefined && { problem }),
  });
  return page(status, body, cookieOf(call, visit));
}

/** Answers a consent: redirects with a code, shows the code, or redirects with the token itself. */
async function allow(call: AuthorizeCall, { id: accountId, namespace }: Account): Promise<Answer> {
  const { deps, request, visits, visit } = call;
  const { app, redirectUri, challenge, isOffline } = request;
  await visits.spend(visit);
  const nowMs = deps.clock.now();
  const code = await deps.codes.issue(nowMs, app, {
    accountId,
    appKey: app.key,
    scopes: app.scopes,
    isOffline,
    ...(redirectUri !== undefined && { redirectUri }),
    ...(challenge && { challenge }),
  });
  if (code === 'full') return fullAnswer(request);
  if (redirectUri === undefined) return page(200, codePage(app.name, code));
  const returnTo = returnAddressOf(request, redirectUri);
  if (request.responseType === 'code') return sendBack(returnTo, { code });
  const exchanged = await deps.codes.exchange(nowMs, { code, appKey: app.key, hasSecret: true, redirectUri });
  if (typeof exchanged === 'string') throw new Error('a new code could not be used');
  return sendBack(returnTo, {
    access_token: exchanged.token,
    token_type: 'bearer',
    expires_in: String(ACCESS_TOKEN_LIFETIME_SECONDS),
    scope: exchanged.scopes.join(' '),
    account_id: accountId,
    uid: namespace,
  });
}

function cancelled(request: AuthorizationRequest): Answer {
  const { redirectUri, app } = request;
  if (redirectUri === undefined) return page(200, refusedPage(app.name));
  const denied = new OAuthRefusal(
    'access_denied',
    'The user chose not to give your app access to their account.',
  );
  return sendBack(returnAddressOf(request, redirectUri), errorFields(denied));
}

function fullAnswer({ app }: AuthorizationRequest): Answer {
  const text = `${app.name} is still in development and has reached its limit of users. Ask its developer to apply for production.`;
  return page(403, noticePage('This app has reached its user limit', text));
}

function refusedAnswer({ refusal, returnTo }: RefusedRequest, method: string): Answer {
  if (returnTo) return sendBack(returnTo, errorFields(refusal), method === 'POST' ? 303 : 302);
  const text = 'The app that sent you here made an invalid request. Its developer needs this message:';
  return page(400, noticePage('This request is not valid', text, `${refusal.error}: ${refusal.message}`));
}

function errorFields({ error, message }: OAuthRefusal): Readonly<Record<string, string>> {
  return { error, error_description: message };
}

function returnAddressOf({ state, responseType }: AuthorizationRequest, redirectUri: string): ReturnAddress {
  return { redirectUri, inFragment: responseType === 'token', ...(state !== undefined && { state }) };
}

/** Redirects to the app's registered URI, which is kept as it was written. */
function sendBack(
  { redirectUri, state, inFragment }: ReturnAddress,
  fields: Readonly<Record<string, string>>,
  status = 303,
): Answer {
  const said = new URLSearchParams({ ...fields, ...(state !== undefined && { state }) });
  const join = inFragment ? '#' : redirectUri.includes('?') ? '&' : '?';
  return { status, headers: { ...HEADERS, location: `${redirectUri}${join}${said}` }, body: '' };
}

/** Redirects to the same request with GET. */
function again({ query }: Exchange, headers: Readonly<Record<string, string>> = {}): Answer {
  // Relative, because a proxy may serve the service under another path.
  return { status: 303, headers: { ...HEADERS, ...headers, location: `?${query}` }, body: '' };
}

function cookieOf({ exchange, deps }: AuthorizeCall, { id }: Visit): Readonly<Record<string, string>> {
  // Without a path: only the browser knows the path under which a proxy serves this page.
  return setCookie(exchange, deps, { name: VISIT_COOKIE, value: id });
}

/** Returns the part of a URL that tells the owner where the browser goes. */
function siteOf(redirectUri: string): string {
  const { protocol, host } = new URL(redirectUri);
  return host === '' ? protocol : `${protocol}//${host}`;
}

const HEADERS = {
  'cache-control': 'no-store',
  // The URL contains the app's request, and a code may be on the page.
  'referrer-policy': 'no-referrer',
};

function page(status: number, body: string, headers: Readonly<Record<string, string>> = {}): Answer {
  return {
    status,
    headers: {
      ...HEADERS,
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': AUTHORIZE_PAGE_POLICY,
      'x-frame-options': 'DENY',
      'x-robots-tag': 'noindex',
      ...headers,
    },
    body,
  };
}
