import type { IncomingMessage } from 'node:http';
import { pathBelow } from '../util/base-path.ts';
import type { Log } from '../util/log.ts';
import type { Credentials, User } from './credentials.ts';
import type { Exchange, Refusal } from './exchange.ts';
import { csrfTokenOf, isCsrfToken, type Sessions } from './sessions.ts';
import { relayPage, SIGN_IN_PAGE_HEADERS, type SignInProblem, signInPage } from './sign-in-page.ts';

const SIGN_IN_PATH = '/.davgate/sign-in';
const SIGN_OUT_PATH = '/.davgate/sign-out';

/** The header in which the web application sends the token of its session, with each request; empty while it has none. */
const CSRF_HEADER = 'x-csrf-token';

/** Methods that change nothing, and need no token. */
const SAFE_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'PROPFIND']);

/** Maximum size of a form with a name and a password, in bytes. */
const FORM_BYTES_MAX = 16 * 1024;

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
}

export interface SignInOptions {
  readonly credentials: Credentials;
  readonly sessions: Sessions;
  readonly log: Log;
}

/** Lets browsers sign in on a page and stay signed in by a cookie, beside the Basic login of all other programs. */
export class SignIn {
  constructor(private readonly options: SignInOptions) {}

  /** Answers a request for signing in or out; returns `undefined` for any other one. */
  serve(exchange: Exchange): Promise<void> | undefined {
    const { path, request } = exchange;
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
    const user = this.options.sessions.use(id);
    if (!user) return undefined;
    const csrfToken = csrfTokenOf(id);
    if (SAFE_METHODS.has(request.method ?? '') || isCsrfToken(id, sentToken(exchange)))
      return { user, csrfToken, isOver: () => !this.options.sessions.has(id) };
    return { ...SIGN_IN_AGAIN, text: 'The token of the session is missing or old; load the page again.' };
  }

  /** Answers a request without a login; returns `undefined` for programs, which are asked for a Basic login. */
  challenge(exchange: Exchange): Promise<void> | undefined {
    const { request } = exchange;
    if (request.headers.authorization !== undefined) return undefined;
    if (isBrowsersNavigation(request)) {
      const to = exchange.prefix + exchange.target;
      if (request.headers['sec-fetch-site'] === 'cross-site') return relay(exchange, to);
      return showPage(exchange, 401, { to });
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
    if (!isFromOwnPage(exchange)) return showPage(exchange, 403, { to, problem: 'foreign' });
    const { credentials, log } = this.options;
    const checked = credentials.checkPassword(name, password, address, FORM_DELAY_MS_MAX);
    const login = await Promise.race([checked, exchange.ended]);
    if (!login) return undefined;
    if (login === 'unauthorized') return showPage(exchange, 401, { to, name, problem: 'wrong' });
    if (login === 'unavailable') return showPage(exchange, 503, { to, name, problem: 'unavailable' });
    if ('retryAfterMs' in login) {
      const waitSeconds = Math.ceil(login.retryAfterMs / 1000);
      return showPage(exchange, 429, { to, name, problem: { waitSeconds } });
    }
    // A session would outlive the app password, and could make others.
    if (login.isOver) return showPage(exchange, 401, { to, name, problem: 'appPassword' });
    const { user } = login;
    this.#end(exchange);
    log.info('signed in', { address, user: user.name });
    exchange.principal = user.name;
    const headers = { 'Set-Cookie': cookie(exchange, this.options.sessions.start(user)) };
    if (isForScript(request)) return exchange.answer({ status: 204, headers, body: undefined });
    return seeOther(exchange, to, headers);
  }

  /** Leads on a browser that is signed in, and shows the page to others. */
  #goOn(exchange: Exchange): Promise<void> {
    const to = localPath(exchange, exchange.query.get('to'));
    const session = this.sessionOf(exchange);
    return session && 'user' in session ? seeOther(exchange, to, {}) : showPage(exchange, 401, { to });
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

const BAD_FORM: Refusal = {
  status: 400,
  text: `Send a form (application/x-www-form-urlencoded) of up to ${FORM_BYTES_MAX / 1024} KiB with name and password.`,
};

function showPage(
  exchange: Exchange,
  status: 401 | 403 | 429 | 503,
  shown: { readonly to: string; readonly name?: string; readonly problem?: SignInProblem },
): Promise<void> {
  const { problem } = shown;
  const headers = {
    ...SIGN_IN_PAGE_HEADERS,
    ...(status === 401 && CHALLENGE),
    ...(problem === 'unavailable' && { 'Retry-After': 5 }),
    ...(typeof problem === 'object' && { 'Retry-After': problem.waitSeconds }),
  };
  const acceptLanguage = exchange.request.headers['accept-language'];
  const body = signInPage({ action: exchange.prefix + SIGN_IN_PATH, acceptLanguage, ...shown });
  return exchange.answer({ status, headers, body });
}

function relay(exchange: Exchange, to: string): Promise<void> {
  const address = `${exchange.prefix}${SIGN_IN_PATH}?${new URLSearchParams({ to })}`;
  const body = relayPage(address, exchange.request.headers['accept-language']);
  return exchange.answer({ status: 401, headers: { ...SIGN_IN_PAGE_HEADERS, ...CHALLENGE }, body });
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
function isBrowsersNavigation({ method, headers }: IncomingMessage): boolean {
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
function isOwnRequest({ method, headers }: IncomingMessage): boolean {
  const { 'sec-fetch-site': site = 'same-origin', 'sec-fetch-mode': mode } = headers;
  return site === 'same-origin' || site === 'none' || (method === 'GET' && mode === 'navigate');
}

/** Whether a form comes from a page of this gateway: another site must not sign its visitors in under its own name. */
function isFromOwnPage({ request: { headers }, forwardedHosts = [] }: Exchange): boolean {
  const { 'sec-fetch-site': site, origin, host } = headers;
  if (site !== undefined) return site === 'same-origin';
  if (origin === undefined) return true;
  const from = URL.canParse(origin) ? new URL(origin).host : undefined;
  return from !== undefined && [host, ...forwardedHosts].some((own) => own?.toLowerCase() === from);
}

/** Returns the token that came with a request. The form that downloads archives has no header and sends it in the query. */
function sentToken({ request, query }: Exchange): string {
  return String(request.headers[CSRF_HEADER] ?? query.get('csrf') ?? '');
}

/** Whether the application asks and reads the status, and not a person in front of the page. */
function isForScript({ headers }: IncomingMessage): boolean {
  return headers[CSRF_HEADER] !== undefined;
}

/**
 * Returns `to` if it is a path of this drive as the browser sees it, else its root. Browsers take `//host` and `/\host` for
 * other hosts.
 */
function localPath({ prefix }: Exchange, to: string | null): string {
  const base = 'http://davgate';
  const root = `${prefix}/`;
  if (!to?.startsWith('/') || !URL.canParse(to, base)) return root;
  const { origin, pathname, search } = new URL(to, base);
  const below = pathBelow(prefix, pathname);
  const isLocal =
    origin === base && !pathname.startsWith('//') && below !== undefined && below !== SIGN_IN_PATH;
  return isLocal ? pathname + search : root;
}

/** Returns the fields of a form; `undefined` for another body or a too long one. */
async function formOf(exchange: Exchange): Promise<URLSearchParams | undefined> {
  const [type = ''] = (exchange.request.headers['content-type'] ?? '').split(';');
  if (type.trim().toLowerCase() !== 'application/x-www-form-urlencoded') return undefined;
  const pieces: Uint8Array[] = [];
  let sizeBytes = 0;
  for await (const piece of exchange.body()) {
    sizeBytes += piece.length;
    if (sizeBytes > FORM_BYTES_MAX) return undefined;
    pieces.push(piece);
  }
  return new URLSearchParams(Buffer.concat(pieces).toString());
}

/** Returns the cookie's value; `undefined` without one. */
function cookieOf(exchange: Exchange): string | undefined {
  const start = `${cookieName(exchange)}=`;
  const cookies = (exchange.request.headers.cookie ?? '').split(/; */);
  return cookies.find((one) => one.startsWith(start))?.slice(start.length);
}

/** A cookie of the browser's run: scripts cannot read it, and requests of other sites' pages do not carry it. */
function cookie(exchange: Exchange, value: string): string {
  const secure = exchange.isSecure ? '; Secure' : '';
  return `${cookieName(exchange)}=${value}; Path=/; HttpOnly; SameSite=Strict${secure}`;
}

/**
 * Contains the port, because browsers give the cookies of a host to all its ports, where another davgate may listen. With
 * `__Host-`, neither another host of the domain nor a page without TLS can set it.
 */
function cookieName({ request, isSecure }: Exchange): string {
  return `${isSecure ? '__Host-' : ''}davgate-session-${request.socket.localPort ?? 0}`;
}
