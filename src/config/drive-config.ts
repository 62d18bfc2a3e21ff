import { parseUrl } from './address.ts';
import { loginFile, readLogin, type StoredLogin } from './login-file.ts';
import { ConfigError, isOn, oneOf, type Setting, type Settings } from './settings.ts';

/** The effect of DELETE: see `--delete`. */
export type DeletePolicy = 'auto' | 'permanent' | 'trash';

/** What happens to the files of desktop systems: see `--local-files`. */
export type LocalFilesPolicy = 'keep' | 'drop' | 'send';

/** What happens to names that the service does not take: see `--names`. */
export type NamesPolicy = 'mapped' | 'strict';

/** A login at a service. */
export type Credentials =
  | { readonly token: string }
  | { readonly appKey: string; readonly appSecret?: string; readonly refreshToken: string };

/** A service's addresses and a login there. */
export type RemoteService = ServiceAddresses & { readonly credentials: Credentials };

/** The service that holds a drive's files: the embedded one, or another. */
export type ServiceConfig = 'embedded' | RemoteService;

/** A service's hosts, without a slash at the end. */
export interface ServiceAddresses {
  readonly apiUrl: string;
  readonly contentUrl: string;
  readonly notifyUrl: string;
}

/** The configuration of one drive. */
export interface DriveConfig {
  readonly name: string;
  readonly service: ServiceConfig;
  /** Email address of its account in the embedded service, if the settings name one. */
  readonly account?: string | undefined;
  /** Where paths begin: `root`, or a namespace's number; the account's home when absent. */
  readonly namespace?: string | undefined;
  /** The folder that is the drive's root; `''` for the whole namespace. */
  readonly root: string;
  /** The effect of `--names`; `undefined`: `mapped`. */
  readonly names?: NamesPolicy;
  readonly deletePolicy: DeletePolicy;
  /** The effect of `--local-files`; `undefined`: `keep`. */
  readonly localFiles?: LocalFilesPolicy;
  /** Whether no user may change it. */
  readonly isReadOnly?: boolean;
}

/** Returns what the embedded service needs to know of the drives that it holds. */
export function embeddedDrives(drives: readonly DriveConfig[]) {
  return (
    drives
      .filter(({ service }) => service === 'embedded')
      // A folder in another namespace is not the service's to make.
      .map(({ name, account, namespace, root }) => ({
        name,
        account,
        root: namespace === undefined ? root : '',
      }))
  );
}

/** Addresses of the public service. */
export const PUBLIC_SERVICE: ServiceAddresses = {
  apiUrl: 'https://api.dropboxapi.com',
  contentUrl: 'https://content.dropboxapi.com',
  notifyUrl: 'https://notify.dropboxapi.com',
};

/** Returns the configuration of one drive from its own settings. Throws `ConfigError`. */
export function driveOf(name: string, settings: Settings, login: KeptLogin | undefined): DriveConfig {
  const service = login ? serviceOfLogin(settings, login) : serviceOf(settings);
  return {
    name,
    service,
    account: accountOf(settings.get('account'), service),
    ...namespaceOf(settings.get('namespace')),
    root: rootOf(settings.get('root')),
    ...(settings.has('names') && { names: oneOf<NamesPolicy>(settings.get('names'), ['mapped', 'strict']) }),
    deletePolicy: oneOf(settings.get('delete'), ['auto', 'permanent', 'trash']),
    ...(settings.has('local-files') && { localFiles: localFilesOf(settings) }),
    ...(isOn(settings.get('read-only')) && { isReadOnly: true }),
  };
}

function localFilesOf(settings: Settings): LocalFilesPolicy {
  return oneOf<LocalFilesPolicy>(settings.get('local-files'), ['keep', 'drop', 'send']);
}

function accountOf(setting: Setting | undefined, service: ServiceConfig): string | undefined {
  if (setting && service !== 'embedded')
    throw new ConfigError(
      `${setting.origin}: is only for the embedded service, and this drive is at ${service.apiUrl}; leave it out`,
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

/** Returns the service's addresses; the public service's by default. Throws `ConfigError`. */
export function addressesOf(settings: Settings): ServiceAddresses {
  const api = urlOf(settings.get('api-url'));
  return {
    apiUrl: api ?? PUBLIC_SERVICE.apiUrl,
    contentUrl: urlOf(settings.get('content-url')) ?? api ?? PUBLIC_SERVICE.contentUrl,
    notifyUrl: urlOf(settings.get('notify-url')) ?? api ?? PUBLIC_SERVICE.notifyUrl,
  };
}

/** A login that `davgate login` stored, and its file. */
export interface KeptLogin extends StoredLogin {
  readonly file: string;
}

/** Returns the login that `davgate login` stored, unless the settings contain a token. */
export function keptLogin(settings: Settings, dataDirectory: string): KeptLogin | undefined {
  if (settings.has('token') || settings.has('refresh-token')) return undefined;
  const login = readLogin(dataDirectory);
  return login && { ...login, file: loginFile(dataDirectory) };
}

/** Refuses settings for another service: a refresh token is sent only to the service that issued it. */
function serviceOfLogin(settings: Settings, login: KeptLogin): ServiceConfig {
  const { apiUrl, appKey, refreshToken, file } = login;
  const api = settings.get('api-url');
  const key = settings.get('app-key');
  const other = api && urlOf(api) !== apiUrl ? api : key && key.text !== appKey ? key : undefined;
  if (other)
    throw new ConfigError(
      `${other.origin}: ${file} is a login at ${apiUrl} with the app ${appKey}; leave this out or run davgate login --remove first`,
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
  // The API's documentation writes its functions as /2/….
  if (trimmed.endsWith('/2'))
    throw new ConfigError(
      `${origin}: "${text}" ends with the API's version; leave out the /2, davgate adds it`,
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

/** Returns a token that a header can carry. Throws `ConfigError`, without the token. */
function tokenIn({ text, origin }: Setting): string {
  if (/^[\x21-\x7e]+$/.test(text)) return text;
  throw new ConfigError(
    `${origin}: contains characters that no token has, perhaps a line break at its end; copy it again`,
  );
}

function namespaceOf(setting: Setting | undefined): Pick<DriveConfig, 'namespace'> {
  if (!setting || setting.text === 'home') return {};
  if (setting.text === 'root' || /^[0-9]{1,19}$/.test(setting.text)) return { namespace: setting.text };
  throw new ConfigError(
    `${setting.origin}: "${setting.text}" is not home, root or the number of a namespace`,
  );
}

export function rootOf(setting: Setting | undefined): string {
  const text = setting?.text.replace(/\/+$/, '') ?? '';
  const isPath = /^(\/[^/\0]+)*$/.test(text) && !/\/\.\.?(\/|$)/.test(text);
  if (setting && !isPath)
    throw new ConfigError(
      `${setting.origin}: "${setting.text}" is not a folder's path; write for example /Team/Plans`,
    );
  return text.normalize('NFC');
}

/** Returns what to do about a login that the service refuses with the error `summary`. */
export function adviceForRefusedLogin(credentials: Credentials, summary: string | undefined): string {
  if ('token' in credentials) return 'give a new access token (DAVGATE_TOKEN), or run davgate login';
  if (summary === 'invalid_client') return 'check DAVGATE_APP_KEY and DAVGATE_APP_SECRET';
  return 'log in again (davgate login --remove, then davgate login), or give a new DAVGATE_REFRESH_TOKEN';
}
