import { parseUrl } from './address.ts';
import { loginFile, readLogin, type StoredLogin } from './login-file.ts';
import { ConfigError, oneOf, type Setting, type Settings } from './settings.ts';

export type DeletePolicy = 'auto' | 'permanent' | 'trash';

export type Credentials =
  | { readonly token: string }
  | { readonly appKey: string; readonly appSecret?: string; readonly refreshToken: string };

/** A service at these addresses, and the login there. */
export type RemoteService = ServiceAddresses & { readonly credentials: Credentials };

/** Where a drive's files are: the service in this process, or another one. */
export type ServiceConfig = 'embedded' | RemoteService;

export interface ServiceAddresses {
  readonly apiUrl: string;
  readonly contentUrl: string;
  readonly notifyUrl: string;
}

export interface DriveConfig {
  readonly name: string;
  readonly service: ServiceConfig;
  /** Address of its account in the embedded service, where the settings name one. */
  readonly account?: string | undefined;
  /** The account's folder that is the drive's root; `''` for the whole account. */
  readonly root: string;
  readonly deletePolicy: DeletePolicy;
}

/** The drives whose files are in this process's own service, as far as that has to know them. */
export function embeddedDrives(drives: readonly DriveConfig[]) {
  return drives
    .filter(({ service }) => service === 'embedded')
    .map(({ name, account, root }) => ({ name, account, root }));
}

/** Where the public service answers. */
export const PUBLIC_SERVICE: ServiceAddresses = {
  apiUrl: 'https://api.dropboxapi.com',
  contentUrl: 'https://content.dropboxapi.com',
  notifyUrl: 'https://notify.dropboxapi.com',
};

/** One drive, by the settings that are its own. Throws `ConfigError`. */
export function driveOf(name: string, settings: Settings, login: KeptLogin | undefined): DriveConfig {
  const service = login ? serviceOfLogin(settings, login) : serviceOf(settings);
  return {
    name,
    service,
    account: accountOf(settings.get('account'), service),
    root: rootOf(settings.get('root')),
    deletePolicy: oneOf(settings.get('delete'), ['auto', 'permanent', 'trash']),
  };
}

function accountOf(setting: Setting | undefined, service: ServiceConfig): string | undefined {
  if (setting && service !== 'embedded')
    throw new ConfigError(
      `${setting.origin}: names an account of the embedded service, and this drive is at ${service.apiUrl}; leave it out`,
    );
  return setting?.text;
}

function serviceOf(settings: Settings): ServiceConfig {
  const credentials = credentialsOf(settings);
  if (!credentials) {
    const named = ['api-url', 'content-url', 'notify-url'] as const;
    const url = named.map((name) => settings.get(name)).find((setting) => setting);
    if (url)
      throw new ConfigError(
        `${url.origin}: a service needs a login; run davgate login, or give --token, or DAVGATE_APP_KEY and DAVGATE_REFRESH_TOKEN`,
      );
    return 'embedded';
  }
  return { ...addressesOf(settings), credentials };
}

/** Where the service is that the settings mean: the public one, if they do not say. Throws `ConfigError`. */
export function addressesOf(settings: Settings): ServiceAddresses {
  const api = urlOf(settings.get('api-url'));
  return {
    apiUrl: api ?? PUBLIC_SERVICE.apiUrl,
    contentUrl: urlOf(settings.get('content-url')) ?? api ?? PUBLIC_SERVICE.contentUrl,
    notifyUrl: urlOf(settings.get('notify-url')) ?? api ?? PUBLIC_SERVICE.notifyUrl,
  };
}

export interface KeptLogin extends StoredLogin {
  readonly file: string;
}

/** What `davgate login` left, unless the settings name a token themselves. */
export function keptLogin(settings: Settings, dataDirectory: string): KeptLogin | undefined {
  if (settings.has('token') || settings.has('refresh-token')) return undefined;
  const login = readLogin(dataDirectory);
  return login && { ...login, file: loginFile(dataDirectory) };
}

/** Its refresh token goes to the service that gave it, and to no other. */
function serviceOfLogin(settings: Settings, login: KeptLogin): ServiceConfig {
  const { apiUrl, appKey, refreshToken, file } = login;
  const api = settings.get('api-url');
  const key = settings.get('app-key');
  const other = api && urlOf(api) !== apiUrl ? api : key && key.text !== appKey ? key : undefined;
  if (other)
    throw new ConfigError(
      `${other.origin}: ${file} is a login at ${apiUrl} with the app ${appKey}; leave this out, or run davgate login --remove first`,
    );
  return {
    apiUrl,
    contentUrl: urlOf(settings.get('content-url')) ?? login.contentUrl,
    notifyUrl: urlOf(settings.get('notify-url')) ?? login.notifyUrl,
    credentials: { appKey, refreshToken },
  };
}

function urlOf(setting: Setting | undefined): string | undefined {
  if (!setting) return undefined;
  const trimmed = parseUrl(setting, 'https://api.example.com');
  const { text, origin } = setting;
  // As the documentation of the API has it, where functions are at /2/….
  if (trimmed.endsWith('/2'))
    throw new ConfigError(
      `${origin}: "${text}" ends with the API's version; leave the /2 out, davgate adds it`,
    );
  return trimmed;
}

function credentialsOf(settings: Settings): Credentials | undefined {
  const token = settings.get('token');
  const appKey = settings.get('app-key');
  const refreshToken = settings.get('refresh-token');
  const appSecret = settings.get('app-secret');
  if (token && refreshToken)
    throw new ConfigError(
      `${token.origin}: a fixed token and a refresh token exclude each other; leave one out`,
    );
  if (token) return { token: tokenIn(token) };
  if (refreshToken && !appKey)
    throw new ConfigError(`${refreshToken.origin}: a refresh token needs its app; give DAVGATE_APP_KEY too`);
  if (!refreshToken && (appKey ?? appSecret))
    throw new ConfigError(
      `${(appKey ?? appSecret)?.origin}: an app needs a login; run davgate login, or give DAVGATE_REFRESH_TOKEN too`,
    );
  if (!refreshToken || !appKey) return undefined;
  return {
    appKey: appKey.text,
    refreshToken: refreshToken.text,
    ...(appSecret && { appSecret: appSecret.text }),
  };
}

/** It goes into a header. Not quoted in the message. */
function tokenIn({ text, origin }: Setting): string {
  if (/^[\x21-\x7e]+$/.test(text)) return text;
  throw new ConfigError(
    `${origin}: holds characters that no token has, perhaps a line break at its end; copy it again`,
  );
}

function rootOf(setting: Setting | undefined): string {
  const text = setting?.text.replace(/\/+$/, '') ?? '';
  const isPath = /^(\/[^/\0]+)*$/.test(text) && !/\/\.\.?(\/|$)/.test(text);
  if (setting && !isPath)
    throw new ConfigError(
      `${setting.origin}: "${setting.text}" is not a folder's path; write for example /Team/Plans`,
    );
  return text.normalize('NFC');
}
