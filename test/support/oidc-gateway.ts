import type { Access } from '../../src/http/admission.ts';
import type { User } from '../../src/http/credentials.ts';
import { OidcSignIn, type OidcSignInOptions } from '../../src/http/oidc-sign-in.ts';
import type { LogFields } from '../../src/util/log.ts';
import { Networks } from '../../src/util/networks.ts';
import { ANN, listening } from './listening.ts';
import { ManualClock } from './manual-clock.ts';
import { startTokenIssuer } from './token-issuer.ts';

/** A user without a password. */
export const EVE = { name: 'eve', grants: [{ drive: 'd' }] };

/** The secret of davgate at the provider. */
export const SECRET = 'the secret: 1';

export interface OidcGatewayOptions extends Partial<Omit<OidcSignInOptions, 'client'>> {
  readonly client?: Partial<OidcSignInOptions['client']>;
  readonly users?: readonly User[];
}

/** A gateway with an issuer, and browsers that use it. */
export async function oidcGateway({ client, users = [ANN, EVE], ...options }: OidcGatewayOptions = {}) {
  const issuer = await startTokenIssuer('davgate');
  const clock = new ManualClock();
  const lines: { level: string; event: string; fields: LogFields }[] = [];
  const note =
    (level: string) =>
    (event: string, fields: LogFields = {}) =>
      void lines.push({ level, event, fields });
  const log = { info: note('info'), warn: note('warn'), error: note('error') };
  const signInProvider = new OidcSignIn({
    client: {
      ...{ issuer: issuer.issuer, clientId: 'davgate', clientSecret: SECRET },
      ...{ scope: 'openid profile', userClaim: 'preferred_username', ...client },
    },
    ...{ name: 'Example ID', publicUrl: undefined, clock, log, ...options },
  });
  const { url, listener } = await listening({
    users,
    signInProvider,
    clock,
    log,
    trustedProxies: new Networks(['127.0.0.1']),
    handle: (_request, _response, { user, providerName }: Access<undefined>, exchange) =>
      exchange.answer({ status: 200, headers: {}, body: JSON.stringify({ user, providerName }) }),
  });
  const get = async (target: string, headers: Readonly<Record<string, string>> = {}) => {
    const answer = await fetch(new URL(target, url), { headers, redirect: 'manual' });
    const cookie = (answer.headers.get('set-cookie') ?? '').replace(/;.*/, '');
    return { status: answer.status, headers: answer.headers, cookie, text: await answer.text() };
  };
  /** Presses the button. */
  const begin = async (to = '/Photos/', headers: Readonly<Record<string, string>> = {}) => {
    const answer = await get(`/.davgate/sign-in/oidc?${new URLSearchParams({ to })}`, headers);
    const location = new URL(answer.headers.get('location') ?? 'http://nowhere/');
    const state = location.searchParams.get('state') ?? '';
    const nonce = location.searchParams.get('nonce') ?? '';
    return { ...answer, location, state, nonce };
  };
  /** Comes back from the provider. */
  const finish = (query: Readonly<Record<string, string>>, cookie: string) =>
    get(`/.davgate/sign-in/oidc/callback?${new URLSearchParams(query)}`, { cookie });
  /** Signs in and returns the last answer. */
  const signIn = async (claims: object = {}) => {
    const { state, nonce, cookie } = await begin();
    issuer.claims = { ...issuer.claims, nonce, ...claims };
    return finish({ state, code: 'the-code' }, cookie);
  };
  return { issuer, clock, lines, listener, get, begin, finish, signIn };
}

export type OidcGateway = Awaited<ReturnType<typeof oidcGateway>>;

/** One sign-in that has begun. */
export type BegunSignIn = Awaited<ReturnType<OidcGateway['begin']>>;

/** Returns the user's name in a session, or the status without one. */
export async function nameIn({ get }: OidcGateway, cookie: string): Promise<string | number> {
  const { status, text } = await get('/', { cookie });
  return status === 200 ? JSON.parse(text).user.name : status;
}
