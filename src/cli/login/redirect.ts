import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { ConfigError } from '../../config/settings.ts';
import { listen } from '../../http/node-server.ts';
import { hashSource } from '../../util/content-policy.ts';
import { html, htmlDocument } from '../../util/html.ts';
import { ICON, LOOK } from '../../util/look.ts';
import { isLoopback } from '../../util/networks.ts';
import { LoginError } from './login-error.ts';

/** An address on this machine to which the browser sends the code of a login. */
export interface Redirect {
  /** Resolves with the code. Throws `LoginError` when the account's owner declines. */
  code(): Promise<string>;
  close(): Promise<void>;
}

/**
 * Listens at `uri`, which is one of the app's redirect addresses. Rejects requests without `state`, because any web page
 * may send them. Throws `ConfigError`, `ListenError`.
 */
export async function openRedirect(uri: string, state: string): Promise<Redirect> {
  const { hostname, port, pathname } = parseRedirect(uri);
  let arrive: (code: string) => void = () => undefined;
  let refuse: (error: LoginError) => void = () => undefined;
  const arrived = new Promise<string>((resolve, reject) => {
    arrive = resolve;
    refuse = reject;
  });
  // The login may be declined before `code` is called.
  arrived.catch(() => undefined);
  const server = createServer((request, response) => {
    const answer = answerTo(request, pathname, state);
    say(response, answer);
    if ('code' in answer) arrive(answer.code);
    if ('error' in answer) refuse(answer.error);
  });
  await listen(server, hostname.replace(/^\[|\]$/g, ''), Number(port));
  return {
    code: () => arrived,
    async close() {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

function parseRedirect(uri: string): URL {
  const url = URL.canParse(uri) ? new URL(uri) : undefined;
  const host = url?.hostname.replace(/^\[|\]$/g, '') ?? '';
  const isUsable =
    url?.protocol === 'http:' && isLoopback(host) && url.port !== '' && !url.search && !url.hash;
  if (!url || !isUsable)
    throw new ConfigError(
      `--redirect: "${uri}" is not an address of this machine with a port; write for example http://localhost:8764/, and register it with the app`,
    );
  return url;
}

/** The page for the browser, and the outcome. */
type Answer = { readonly status: number; readonly title: string; readonly text: string } & (
  | { readonly code: string }
  | { readonly error: LoginError }
  | object
);

function answerTo({ method, url = '' }: IncomingMessage, pathname: string, state: string): Answer {
  // Any page may send a browser here, also to what is no URL.
  const asked = URL.canParse(url, 'http://localhost') ? new URL(url, 'http://localhost') : undefined;
  if (method !== 'GET' || asked?.pathname !== pathname)
    return { status: 404, title: 'Not found', text: 'davgate waits for its code at another address.' };
  if (asked.searchParams.get('state') !== state)
    return {
      status: 400,
      title: 'This is another login',
      text: 'This code is not for the login that davgate waits for; run davgate login again.',
    };
  const code = asked.searchParams.get('code');
  if (code)
    return {
      status: 200,
      title: 'One step done',
      text: 'davgate received the code. You can close this page and go back to the terminal.',
      code,
    };
  const declined = asked.searchParams.get('error') === 'access_denied';
  return {
    status: 200,
    title: 'Nothing was allowed',
    text: 'davgate did not get access. You can close this page.',
    error: new LoginError(declined ? 'access was declined' : 'the storage service refused the request'),
  };
}

function say(response: ServerResponse, { status, title, text }: Answer): void {
  response.writeHead(status, {
    'Content-Type': 'text/html; charset=utf-8',
    'Content-Security-Policy': `default-src 'none'; style-src ${hashSource(LOOK)}; img-src data:; frame-ancestors 'none'`,
    // The address contains the code.
    'Referrer-Policy': 'no-referrer',
    'Cache-Control': 'no-store',
    Connection: 'close',
  });
  response.end(
    htmlDocument({
      title: `${title} · davgate`,
      style: LOOK,
      head: html`<link rel="icon" href="${ICON}">\n`,
      body: html`<body><main><div class="card"><h1>${title}</h1>\n<p>${text}</p></div></main></body>`,
    }),
  );
}
