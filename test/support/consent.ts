import type { App, NewApp } from '../../src/service/accounts/apps.ts';
import { addAccount } from '../../src/service/accounts/provision.ts';
import { SCOPES } from '../../src/service/accounts/scopes.ts';
import { hashOfPassword } from '../../src/service/accounts/secrets.ts';
import type { Directory } from '../../src/service/directory/directory.ts';
import { withSharedDirectory } from '../../src/service/directory/postgres/postgres-directory.ts';
import { openSqliteDirectory } from '../../src/service/directory/sqlite/sqlite-directory.ts';
import type { TestService } from './service.ts';
import { type Answered, send } from './service-client.ts';
import { metadataOf } from './shared-stores.ts';

/** Works on the accounts of a running service by a connection of its own, as the commands do. */
export async function besideService<T>(
  service: TestService,
  work: (directory: Directory) => T | Promise<T>,
): Promise<T> {
  const metadata = await metadataOf(service.dataDirectory);
  if (metadata !== undefined)
    return await withSharedDirectory(metadata, async (directory) => await work(directory));
  const { directory, close } = openSqliteDirectory(service.dataDirectory);
  try {
    return await work(directory);
  } finally {
    await close();
  }
}

/** Adds an app. Fields left out have any valid value. */
export async function addApp(
  service: TestService,
  app: Partial<NewApp> = {},
): Promise<{ readonly app: App; readonly secret: string }> {
  const plain = { name: 'Test app', status: 'production', scopes: SCOPES, redirectUris: [] } as const;
  return await besideService(service, ({ apps }) => apps.add({ ...plain, ...app }));
}

/** Adds an account with a password. Returns its id. */
export async function addPerson(service: TestService, email: string, password: string): Promise<string> {
  const passwordHash = await hashOfPassword(password);
  const person = { email, givenName: 'Ann', surname: 'Other', mayDeletePermanently: false, passwordHash };
  return await besideService(service, async ({ accounts }) => (await addAccount(accounts, person)).id);
}

/** A client of the pages of `/oauth2/authorize` that keeps cookies, each for its path (RFC 6265), and sends forms. */
export class FormBrowser {
  #cookies = new Map<string, { readonly value: string; readonly path: string }>();
  #page: { readonly url: string; readonly answered: Answered } | undefined;

  constructor(private readonly service: Pick<TestService, 'url'>) {}

  /** The HTML of the last page. */
  get text(): string {
    return this.#page?.answered.text ?? '';
  }

  open(
    parameters: Readonly<Record<string, string>> | URLSearchParams,
    path = '/oauth2/authorize',
  ): Promise<Answered> {
    return this.#go(`${this.service.url}${path}?${new URLSearchParams(parameters)}`, {});
  }

  /** Submits the page's form by one of its buttons. Follows redirects within the service. */
  press(action: string, fields: Readonly<Record<string, string>> = {}): Promise<Answered> {
    const token = /name="form_token" value="([^"]+)"/.exec(this.text)?.[1] ?? '';
    const body = new URLSearchParams({ form_token: token, action, ...fields });
    return this.#go(this.#page?.url ?? '', { method: 'POST', body });
  }

  signIn(email: string, password: string): Promise<Answered> {
    return this.press('sign-in', { email, password });
  }

  forgetCookies(): void {
    this.#cookies.clear();
  }

  async #go(url: string, init: RequestInit): Promise<Answered> {
    const { origin, pathname } = new URL(url);
    const cookie = [...this.#cookies]
      .filter(([, { path }]) => pathname === path || pathname.startsWith(`${path.replace(/\/$/, '')}/`))
      .map(([name, { value }]) => `${name}=${value}`)
      .join('; ');
    const answered = await send(url, { ...init, headers: { cookie } });
    const folder = pathname.slice(0, pathname.lastIndexOf('/'));
    for (const line of answered.headers.getSetCookie()) {
      const [, name = '', value = '', path = folder] =
        /^([^=]+)=([^;]*)(?:.*; Path=([^;]*))?/.exec(line) ?? [];
      this.#cookies.set(name, { value, path });
    }
    const location = answered.headers.get('location');
    const next = location === null ? undefined : new URL(location, url);
    if (next?.origin === origin) return this.#go(next.href, {});
    if (!next) this.#page = { url, answered };
    return answered;
  }
}

/** Returns the parameters that an answer sends back to the app in its `Location`, by name. */
export function sentBack(answered: Answered, to: string): Record<string, string> {
  const location = answered.headers.get('location') ?? '';
  if (!location.startsWith(to)) throw new Error(`not sent to ${to}: ${answered.status} ${location}`);
  return Object.fromEntries(new URLSearchParams(location.slice(to.length + 1)));
}

/** Goes through the whole code flow. Returns the access token. */
export async function tokenByConsent(
  service: TestService,
  app: { readonly key: string; readonly secret: string; readonly redirectUri: string },
  email: string,
  password: string,
): Promise<string> {
  const { key, secret, redirectUri } = app;
  const browser = new FormBrowser(service);
  await browser.open({ client_id: key, response_type: 'code', redirect_uri: redirectUri });
  await browser.signIn(email, password);
  const { code = '' } = sentBack(await browser.press('allow'), redirectUri);
  const answered = await send(`${service.url}/oauth2/token`, {
    method: 'POST',
    headers: { authorization: `Basic ${Buffer.from(`${key}:${secret}`).toString('base64')}` },
    body: new URLSearchParams({ grant_type: 'authorization_code', code, redirect_uri: redirectUri }),
  });
  return (answered.json as { access_token: string }).access_token;
}
