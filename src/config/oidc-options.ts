/** The settings of an OpenID Connect provider. */
export const OIDC_OPTIONS = [
  {
    name: 'oidc-issuer',
    variable: 'DAVGATE_OIDC_ISSUER',
    value: 'URL',
    help: 'OpenID Connect provider at which people sign in with a browser, exactly as it names itself; https, or http on this machine',
  },
  {
    name: 'oidc-client-id',
    variable: 'DAVGATE_OIDC_CLIENT_ID',
    value: 'ID',
    help: 'the id under which davgate is registered at that provider',
  },
  {
    name: 'oidc-client-secret',
    variable: 'DAVGATE_OIDC_CLIENT_SECRET',
    value: 'SECRET',
    flag: false,
    isSecret: true,
    help: 'the secret for that id; not needed if davgate is registered as a public client',
  },
  {
    name: 'oidc-client-secret-file',
    variable: 'DAVGATE_OIDC_CLIENT_SECRET_FILE',
    value: 'FILE',
    help: 'file with that secret',
  },
  {
    name: 'oidc-name',
    variable: 'DAVGATE_OIDC_NAME',
    value: 'NAME',
    help: "the provider's name on the button of the sign-in page; default: the host of oidc-issuer",
  },
  {
    name: 'oidc-user-claim',
    variable: 'DAVGATE_OIDC_USER_CLAIM',
    value: 'CLAIM',
    default: 'preferred_username',
    help: 'the claim that contains the user name, like email',
  },
  {
    name: 'oidc-scope',
    variable: 'DAVGATE_OIDC_SCOPE',
    value: 'SCOPES',
    default: 'openid profile email',
    help: 'the scopes that davgate asks for, separated by blanks',
  },
  {
    name: 'oidc-users',
    variable: 'DAVGATE_OIDC_USERS',
    value: 'configured|all',
    default: 'configured',
    help: 'who may sign in there: the users that davgate knows (configured), or everyone whom the provider accepts (all); others than its own users get the first drive',
  },
] as const;
