import type { App } from '../../src/service/accounts/apps.ts';
import { addApp, FormBrowser, sentBack } from './consent.ts';
import type { TestService } from './service.ts';
import { type Answered, rpc, send } from './service-client.ts';

/** The account that signs in. */
export const EMAIL = 'ann@example.org';
export const PASSWORD = 'correct horse';

/** Redirect URIs of the app. */
export const CALLBACK = 'http://localhost:53682/';
export const OVER_HTTPS = 'https://app.example/callback?from=davgate';

/** The code flow of a new app that no account has allowed, in a browser without cookies. */
export class CodeFlow {
  readonly browser: FormBrowser;

  private constructor(
    private readonly service: TestService,
    readonly app: App,
    readonly secret: string,
  ) {
    this.browser = new FormBrowser(service);
  }

  static async start(service: TestService): Promise<CodeFlow> {
    const redirectUris = [CALLBACK, OVER_HTTPS];
    const { app, secret } = await addApp(service, { name: 'Photo <Sorter>', redirectUris });
    return new CodeFlow(service, app, secret);
  }

  /** Returns the parameters of the app's authorization request. */
  asking(more: Record<string, string> = {}): Record<string, string> {
    return { client_id: this.app.key, response_type: 'code', redirect_uri: CALLBACK, ...more };
  }

  /** Opens the page, signs in and allows what is asked. */
  async allow(request: Record<string, string>): Promise<Answered> {
    await this.browser.open(request);
    await this.browser.signIn(EMAIL, PASSWORD);
    return this.browser.press('allow');
  }

  async codeFor(request: Record<string, string>): Promise<string> {
    return sentBack(await this.allow(request), request['redirect_uri'] ?? '')['code'] ?? '';
  }

  /** Exchanges a code. An empty text in `more` leaves the parameter out. */
  exchange(code: string, more: Record<string, string> = {}): Promise<Answered> {
    const form = {
      grant_type: 'authorization_code',
      code,
      client_id: this.app.key,
      client_secret: this.secret,
      redirect_uri: CALLBACK,
      ...more,
    };
    return this.#token(Object.entries(form).filter(([, value]) => value !== ''));
  }

  refresh(refreshToken: string, more: Record<string, string>): Promise<Answered> {
    const form = { grant_type: 'refresh_token', refresh_token: refreshToken, client_id: this.app.key };
    return this.#token(Object.entries({ ...form, ...more }));
  }

  /** Returns the email of a token's account, or the status of the refusal. */
  async whoIs(token: string): Promise<unknown> {
    const answered = await rpc(this.service, 'users/get_current_account', null, { token });
    return answered.status === 200 ? (answered.json as { email: string }).email : answered.status;
  }

  #token(form: [string, string][]): Promise<Answered> {
    const body = new URLSearchParams(form);
    return send(`${this.service.url}/oauth2/token`, { method: 'POST', body });
  }
}

export const tokensIn = (answered: Answered) =>
  answered.json as { readonly access_token: string; readonly refresh_token?: string };
