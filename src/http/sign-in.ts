import type { HttpRequest } from '../util/http-messages.ts';
import type { Log } from '../util/log.ts';
import type { PageLook } from '../util/look.ts';
import type { Credentials, User } from './credentials.ts';
import type { Exchange, Refusal } from './exchange.ts';
import { csrfTokenOf, isCsrfToken, type Sessions } from './sessions.ts';
import { BAD_FORM, formOf, isFromOwnPage, localPath, SIGN_IN_PATH } from './sign-in-form.ts';
import {
  relayPage,
  type SignInPage,
  type SignInProblem,
  signInPage,
  signInPageHeaders,
  statusOf,
} from './sign-in-page.ts';

/** Where a sign-in at a provider begins. It ends at `callback` below. */
export const OIDC_PATH = `${SIGN_IN_PATH}/oidc`;
const SIGN_OUT_PATH = '/.davgate/sign-out';

/** The header in which the web application sends the token of its session, with each request; empty while it has none. */
const CSRF_HEADER = 'x-csrf-token';

/** Methods that change nothing, and need no token. */
const SAFE_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'PROPFIND']);

/** Maximum delay of a form after wrong passwords, in ms. A person who must wait longer is told so at once. */
const FORM_DELAY_MS_MAX = 2_000;

/** The cookie's value after a sign-out. It tells a browser with the application from a program. */
const ENDED = 'ended';

/** A browser's session. */
export interface SignedIn {
  readonly user: User;
  readonly csrfToken: string;
  /** Whether the session has ended since. */
  readonly isOver: () => boolean;
  /** The name of the provider at which the user has signed in. */
  readonly providerName?: string | undefined;
}

/** The end of a sign-in at a provider, and where the browser goes on. */
export type SignInAtProvider = { readonly to: string } & (
  | { readonly user: User }
  | { readonly problem: SignInProblem }
);

/** Another server at which people sign in. */
export interface SignInProvider {
  /** Its name for people. */
  readonly name: string;
  /** Returns the address there to which the browser goes, and a cookie for the way back. */
  begin(
    exchange: Exchange,
    to: string,
  ): Promise<
    | { readonly address: string; readonly cookie: string }
    | { readonly to: string; readonly problem: SignInProblem }
  >;
  /** Returns the user with whom the browser has come back. `find` returns a user that davgate knows. */
  finish(exchange: Exchange, find: (name: string) => User | undefined): Promise<SignInAtProvider>;
}

export interface SignInOptions {
  readonly credentials: Credentials;
  readonly sessions: Sessions;
  readonly log: Log;
  readonly provider: SignInProvider | undefined;
  readonly look: PageLook;
}

/** Lets browsers sign in on a page and stay signed in by a cookie, beside the Basic login of all other programs. */
export class SignIn {
  constructor(private readonly options: SignInOptions) {}

  /** Answers a request for signing in or out; returns `undefined` for any other one. */
  serve(exchange: Exchange): Promise<void> | undefined {
    const { path, request } = exchange;
    const { provider } = this.options;
    if (provider && path === OIDC_PATH && request.method === 'GET') return this.#leave(exchange, provider);
    if (provider && path === `${OIDC_PATH}/callback` && request.method === 'GET')
      return this.#comeBack(exchange, provider);
    if (path === SIGN_IN_PATH && request.method === 'POST') return this.#signIn(exchange);
    if (path === SIGN_IN_PATH && request.method === 'GET') return this.#goOn(exchange);
    if (path === SIGN_OUT_PATH && request.method === 'POST') return this.#signOut(exchange);
    return undefined;
  }

  /**
   * Returns the session that a request belongs to, or why it is refused: `undefined` without a session. Only requests of
   * this gateway's own pages have one, and those that change something must show that they could read its token.
   */
  sessionOf(exchange: Exchange): SignedIn | Refusal | undefined {
    const { request } = exchange;
    const id = cookieOf(exchange);
    if (id === undefined || !isOwnRequest(request)) return undefined;
    const { sessions, provider } = this.options;
    const user = sessions.use(id);
    if (!user) return undefined;
    const csrfToken = csrfTokenOf(id);
    if (SAFE_METHODS.has(request.method ?? '') || isCsrfToken(id, sentToken(exchange))) {
      const providerName = provider && sessions.isFromProvider(id) ? provider.name : undefined;
      return { user, csrfToken, isOver: () => !sessions.has(id), providerName };
    }
    return { ...SIGN_IN_AGAIN, text: 'The token of the session is missing or old; load the page again.' };
  }

  /** Answers a request without a login; returns `undefined` for programs, which are asked for a Basic login. */
  challenge(exchange: Exchange): Promise<void> | undefined {
    const { request } = exchange;
    if (request.headers.authorization !== undefined) return undefined;
    if (isBrowsersNavigation(request)) {
      const to = exchange.prefix + exchange.target;
      if (request.headers['sec-fetch-site'] === 'cross-site') {
        const address = `${exchange.prefix}${SIGN_IN_PATH}?${new URLSearchParams({ to })}`;
        return relay(exchange, address, this.options.look, { status: 401, headers: CHALLENGE });
      }
      return this.#showPage(exchange, { to });
    }
    const isOfApplication = request.headers[CSRF_HEADER] !== undefined || cookieOf(exchange) !== undefined;
    return isOfApplication ? exchange.refuse(SIGN_IN_AGAIN) : undefined;
  }

  async #signIn(exchange: Exchange): Promise<void> {
    const { request, address } = exchange;
    const form = await formOf(exchange);
    if (!form) return exchange.refuse(BAD_FORM);
    const to = localPath(exchange, form.get('to'));
    const [name, password] = [form.get('name') ?? '', form.get('password') ?? ''];
    if (!isFromOwnPage(exchange)) return this.#showPage(exchange, { to, problem: 'foreign' });
    const { credentials } = this.options;
    const checked = credentials.checkPassword(name, password, address, FORM_DELAY_MS_MAX);
    const login = await Promise.race([checked, exchange.ended]);
    if (!login) return undefined;
    if (login === 'unauthorized') return this.#showPage(exchange, { to, name, problem: 'wrong' });
    if (login === 'unavailable') return this.#showPage(exchange, { to, name, problem: 'unavailable' });
    if ('retryAfterMs' in login) {
      const waitSeconds = Math.ceil(login.retryAfterMs / 1000);
      return this.#showPage(exchange, { to, name, problem: { waitSeconds } });
    }
    // A session would outlive the app password, and could make others.
    if (login.isOver) return this.#showPage(exchange, { to, name, problem: 'appPassword' });
    const headers = this.#start(exchange, login.user);
    if (isForScript(request)) return exchange.answer({ status: 204, headers, body: undefined });
    return seeOther(exchange, to, headers);
  }

  /** Leads a browser to the provider. */
  async #leave(exchange: Exchange, provider: SignInProvider): Promise<void> {
    const to = localPath(exchange, exchange.query.get('to'));
    const begun = await Promise.race([provider.begin(exchange, to), exchange.ended]);
    if (!begun) return undefined;
    if ('problem' in begun) return this.#showPage(exchange, begun);
    // On the way back the browser does not send its cookie. An image on a page must sign nobody out.
    if (isBrowsersNavigation(exchange.request)) this.#end(exchange);
    return seeOther(exchange, begun.address, { 'Set-Cookie': begun.cookie });
  }

  /** Starts the session of a browser that the provider has led back. */
  async #comeBack(exchange: Exchange, provider: SignInProvider): Promise<void> {
    const finishing = provider.finish(exchange, (name) => this.options.credentials.named(name));
    const result = await Promise.race([finishing, exchange.ended]);
    if (!result) return undefined;
    if ('problem' in result) return this.#showPage(exchange, result);
    const headers = this.#start(exchange, result.user, { isFromProvider: true });
    return relay(exchange, result.to, this.options.look, { status: 200, headers });
  }

  /** Starts a session in place of the browser's old one. Returns the header with its cookie. */
  #start(exchange: Exchange, user: User, how: { readonly isFromProvider?: boolean } = {}) {
    const { sessions, log, provider } = this.options;
    this.#end(exchange);
    const { address } = exchange;
    log.info('signed in', { address, user: user.name, ...(how.isFromProvider && { at: provider?.name }) });
    exchange.principal = user.name;
    return { 'Set-Cookie': cookie(exchange, sessions.start(user, how)) };
  }

  /** Asks to sign in. */
  #showPage(exchange: Exchange, page: SignInPage): Promise<void> {
    const { credentials, provider, look } = this.options;
    const { status, waitSeconds } = statusOf(page.problem);
    const acceptLanguage = exchange.request.headers['accept-language'];
    const headers = {
      ...signInPageHeaders(look, acceptLanguage),
      ...(status === 401 && CHALLENGE),
      ...(waitSeconds !== undefined && { 'Retry-After': waitSeconds }),
    };
    const ways = {
      formAction: credentials.hasPasswords ? exchange.prefix + SIGN_IN_PATH : undefined,
      provider: provider && { name: provider.name, address: exchange.prefix + OIDC_PATH },
    };
    const body = signInPage(page, ways, look, acceptLanguage);
    return exchange.answer({ status, headers, body });
  }

  /** Leads on a browser that is signed in, and shows the page to others. */
  #goOn(exchange: Exchange): Promise<void> {
    const to = localPath(exchange, exchange.query.get('to'));
    const session = this.sessionOf(exchange);
    return session && 'user' in session ? seeOther(exchange, to, {}) : this.#showPage(exchange, { to });
  }

  #signOut(exchange: Exchange): Promise<void> {
    const session = this.sessionOf(exchange);
    // Without its token, or by a cookie in the answer to its own form, another site's page could sign people out.
    if (session && 'status' in session) return exchange.refuse(session);
    const headers = { 'Cache-Control': 'no-store' };
    if (!session) return exchange.answer({ status: 204, headers, body: undefined });
    this.options.log.info('signed out', { address: exchange.address, user: session.user.name });
    exchange.principal = session.user.name;
    this.#end(exchange);
    const ended = { ...headers, 'Set-Cookie': cookie(exchange, ENDED) };
    return exchange.answer({ status: 204, headers: ended, body: undefined });
  }

  #end(exchange: Exchange): void {
    const id = cookieOf(exchange);
    if (id !== undefined) this.options.sessions.end(id);
  }
}

/**
 * RFC 9110 §15.5.2 wants a challenge. Browsers ignore one of an unknown scheme; for Basic they would ask for a password in
 * a window of their own.
 */
const CHALLENGE = { 'WWW-Authenticate': 'Cookie realm="davgate"' };

const SIGN_IN_AGAIN: Refusal = { status: 401, text: 'Sign in to this davgate.', headers: CHALLENGE };

/** Leads on a browser that comes from another site, so that it sends the cookie of the session. */
function relay(
  exchange: Exchange,
  address: string,
  look: PageLook,
  { status, headers }: { readonly status: number; readonly headers: Readonly<Record<string, string>> },
): Promise<void> {
  const acceptLanguage = exchange.request.headers['accept-language'];
  const body = relayPage(address, look, acceptLanguage);
  return exchange.answer({
    status,
    headers: { ...signInPageHeaders(look, acceptLanguage), ...headers },
    body,
  });
}

function seeOther(
  exchange: Exchange,
  location: string,
  headers: Readonly<Record<string, string>>,
): Promise<void> {
  const all = { ...headers, Location: location, 'Cache-Control': 'no-store' };
  return exchange.answer({ status: 303, headers: all, body: '' });
}

/**
 * Whether a browser opens an address in a window, and shows what it gets. Browsers tell that only to https and to this
 * machine; else they are known by what they accept.
 */
function isBrowsersNavigation({ method, headers }: HttpRequest): boolean {
  const { accept = '', 'sec-fetch-mode': mode, 'sec-fetch-dest': target = 'document' } = headers;
  if (method !== 'GET') return false;
  if (mode !== undefined) return mode === 'navigate' && target === 'document' && accept.includes('text/html');
  const types = accept.split(',').map((type) => type.replace(/;.*/, '').trim());
  // KDE's file manager and Java's HTTP client name HTML first too, and then pictures, but never XHTML.
  const isBrowsers =
    types.includes('application/xhtml+xml') || types.every((type) => /^(text\/html|\*\/\*)$/.test(type));
  return types.includes('text/html') && isBrowsers;
}

/** Whether a page of this gateway asks, or a person who opens an address. Programs and old browsers do not say it. */
function isOwnRequest({ method, headers }: HttpRequest): boolean {
  const { 'sec-fetch-site': site = 'same-origin', 'sec-fetch-mode': mode } = headers;
  return site === 'same-origin' || site === 'none' || (method === 'GET' && mode === 'navigate');
}

/** Returns the token that came with a request. The form that downloads archives has no header and sends it in the query. */
function sentToken({ request, query }: Exchange): string {
  return String(request.headers[CSRF_HEADER] ?? query.get('csrf') ?? '');
}

/** Whether the application asks and reads the status, and not a person in front of the page. */
function isForScript({ headers }: HttpRequest): boolean {
  return headers[CSRF_HEADER] !== undefined;
}

/** What a cookie is for: a session, or the way back from a provider. */
type CookieUse = 'session' | 'oidc';

/** Returns the value of a cookie; `undefined` without one. */
export function cookieOf(exchange: Exchange, use: CookieUse = 'session'): string | undefined {
  const start = `${cookieName(exchange, use)}=`;
  const cookies = (exchange.request.headers.cookie ?? '').split(/; */);
  return cookies.find((one) => one.startsWith(start))?.slice(start.length);
}

/** A cookie of the browser's run: scripts cannot read it, and requests of other sites' pages do not carry it. */
function cookie(exchange: Exchange, value: string): string {
  const secure = exchange.isSecure ? '; Secure' : '';
  return `${cookieName(exchange, 'session')}=${value}; Path=/; HttpOnly; SameSite=Strict${secure}`;
}

/**
 * Contains the port, because browsers give the cookies of a host to all its ports, where another davgate may listen. With
 * `__Host-`, neither another host of the domain nor a page without TLS can set it.
 */
export function cookieName({ request, isSecure }: Exchange, use: CookieUse): string {
  return `${isSecure ? '__Host-' : ''}davgate-${use}-${request.socket.localPort ?? 0}`;
}
