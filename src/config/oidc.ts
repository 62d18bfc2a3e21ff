import { encryptedUrlOf, parseUrl } from './address.ts';
import { ConfigError, oneOf, type SettingName, type Settings } from './settings.ts';

/** An OpenID Connect provider, and davgate as its client. */
export interface OidcConfig {
  readonly issuer: string;
  readonly clientId: string;
  /** `undefined` for a public client. */
  readonly clientSecret: string | undefined;
  /** The provider's name for people. */
  readonly name: string;
  /** The claim with the name of the user. */
  readonly userClaim: string;
  readonly scope: string;
  /** Whether only users that davgate knows may sign in, or everyone whom the provider accepts. */
  readonly users: 'configured' | 'all';
}

/** Settings that say nothing without a provider. */
const FURTHER = [
  'oidc-client-id',
  'oidc-client-secret',
  'oidc-name',
  'oidc-user-claim',
  'oidc-scope',
  'oidc-users',
] as const satisfies readonly SettingName[];

const EXAMPLE = 'https://login.example.com/realms/home';

/** Returns the provider; `undefined` without `oidc-issuer`. Throws `ConfigError`. */
export function oidcOf(settings: Settings): OidcConfig | undefined {
  const issuer = settings.get('oidc-issuer');
  if (!issuer) {
    const lonely = FURTHER.map((name) => settings.get(name)).find((setting) => setting);
    if (!lonely) return undefined;
    throw new ConfigError(`${lonely.origin}: needs a provider; give --oidc-issuer too, or leave it out`);
  }
  parseUrl(issuer, EXAMPLE);
  const clientId = settings.get('oidc-client-id');
  if (!clientId)
    throw new ConfigError(
      `${issuer.origin}: a provider without the id of davgate there; register davgate at the provider and give --oidc-client-id too`,
    );
  const scope = settings.get('oidc-scope');
  if (scope && !scope.text.split(/\s+/).includes('openid'))
    throw new ConfigError(
      `${scope.origin}: without the scope openid the provider says nothing about the user; add it`,
    );
  return {
    // With or without a slash at its end, it must be what the provider calls itself.
    issuer: encryptedUrlOf(issuer, EXAMPLE, 'sign-ins'),
    clientId: clientId.text,
    clientSecret: settings.get('oidc-client-secret')?.text,
    name: settings.get('oidc-name')?.text ?? new URL(issuer.text).host,
    userClaim: settings.get('oidc-user-claim')?.text ?? 'preferred_username',
    scope: scope?.text ?? 'openid profile email',
    users: oneOf(settings.get('oidc-users'), ['configured', 'all']),
  };
}
