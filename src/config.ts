import { accessSync, constants } from 'node:fs';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import type { ConfigFile, UserConfig } from './config-file.ts';
import { loginFile, readLogin, type StoredLogin } from './login-file.ts';
import { ConfigError, DRIVE_SETTINGS, type Setting, type Settings } from './settings.ts';

export interface Address {
  readonly host: string;
  readonly port: number;
}

export type DeletePolicy = 'auto' | 'permanent' | 'trash';

export type Credentials =
  | { readonly token: string }
  | { readonly appKey: string; readonly appSecret?: string; readonly refreshToken: string };

/** Where a drive's files are: the service in this process, or one at these addresses. */
export type ServiceConfig = 'embedded' | (ServiceAddresses & { readonly credentials: Credentials });

export interface ServiceAddresses {
  readonly apiUrl: string;
  readonly contentUrl: string;
  readonly notifyUrl: string;
}

export interface DriveConfig {
  readonly name: string;
  readonly service: ServiceConfig;
  /** The account's folder that is the drive's root; `''` for the whole account. */
  readonly root: string;
  readonly deletePolicy: DeletePolicy;
}

export interface Config {
  readonly listen: Address;
  readonly tls: { readonly certFile: string; readonly keyFile: string } | undefined;
  readonly dataDirectory: string;
  readonly cacheDirectory: string;
  /** When a write is acknowledged: when the service has it, or when it is in the journal in the data directory. */
  readonly writeMode: 'through' | 'back';
  /** Where the state is that several gateways share; `undefined` when it is in the data directory. */
  readonly redisUrl: string | undefined;
  readonly drives: readonly DriveConfig[];
  /** `undefined`: everyone may use the first drive. */
  readonly users: readonly UserConfig[] | undefined;
}

/** Where the public service answers. */
export const PUBLIC_SERVICE: ServiceAddresses = {
  apiUrl: 'https://api.dropboxapi.com',
  contentUrl: 'https://content.dropboxapi.com',
  notifyUrl: 'https://notify.dropboxapi.com',
};

/** The drive of a configuration that names none. */
export const DEFAULT_DRIVE = 'default';
const DEFAULT_USER = 'davgate';

/** The configuration that flags, variables and a file make together; the first of them that says a thing counts. */
export function resolveConfig(
  settings: Settings,
  file: ConfigFile | undefined,
  environment: NodeJS.ProcessEnv,
  packageRoot: string,
): Config {
  const listen = parseAddress(settings.get('listen') ?? { text: '127.0.0.1:8765', origin: '--listen' });
  if (file?.drives) refuseBesideDrives(settings, file.origin);
  const dataDirectory = dataDirectoryOf(settings, environment);
  const drives = file?.drives?.map((drive) => driveOf(drive.name, drive.settings, undefined)) ?? [
    driveOf(DEFAULT_DRIVE, settings, keptLogin(settings, dataDirectory)),
  ];
  return {
    listen,
    tls: tlsOf(settings),
    dataDirectory,
    cacheDirectory: resolve(
      settings.get('cache-dir')?.text ?? defaultCacheDirectory(environment, packageRoot),
    ),
    writeMode: writeModeOf(settings),
    redisUrl: redisUrlOf(settings.get('redis')),
    drives,
    users: usersOf(settings, file, listen, drives),
  };
}

/** Where davgate keeps what must last. */
export function dataDirectoryOf(settings: Settings, environment: NodeJS.ProcessEnv): string {
  const home = environment['XDG_DATA_HOME'] ?? join(homedir(), '.local/share');
  return resolve(settings.get('data-dir')?.text ?? join(home, 'davgate'));
}

/** Where the davgate that runs with a data directory hears the commands of its owner. */
export function controlSocketIn({ dataDirectory }: Pick<Config, 'dataDirectory'>): string {
  return join(dataDirectory, 'state', 'control.sock');
}

/** Loopback is safe without a password and without encryption. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127\./.test(host);
}

/** Throws `ConfigError`. */
export function parseAddress({ text, origin }: Setting): Address {
  const match = /^(?:\[([^\]]+)\]|([^:]*)):(\d+)$/.exec(text);
  const host = match?.[1] ?? match?.[2] ?? '';
  const port = Number(match?.[3]);
  if (!match || host === '' || port > 65535)
    throw new ConfigError(
      `${origin}: "${text}" is not HOST:PORT; write for example 127.0.0.1:8765 or [::1]:8765`,
    );
  return { host, port };
}

function defaultCacheDirectory(environment: NodeJS.ProcessEnv, packageRoot: string): string {
  const ofCheckout = join(packageRoot, 'cache');
  try {
    accessSync(ofCheckout, constants.W_OK);
    return ofCheckout;
  } catch {
    return join(environment['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'davgate');
  }
}

function oneOf<T extends string>(setting: Setting | undefined, values: readonly [T, ...T[]]): T {
  if (!setting) return values[0];
  const value = values.find((candidate) => candidate === setting.text);
  if (!value) throw new ConfigError(`${setting.origin}: "${setting.text}" is none of ${values.join(', ')}`);
  return value;
}

/** A write in one gateway's journal is not seen by the others. */
function writeModeOf(settings: Settings): Config['writeMode'] {
  const setting = settings.get('write-mode');
  const mode = oneOf(setting, ['through', 'back']);
  const redis = settings.get('redis');
  if (mode === 'back' && redis)
    throw new ConfigError(
      `${setting?.origin}: "back" keeps writes in one gateway, and ${redis.origin} is for several; leave one out`,
    );
  return mode;
}

/** The text is not quoted in the message: it may hold a password. */
function redisUrlOf(setting: Setting | undefined): string | undefined {
  if (!setting) return undefined;
  const url = URL.canParse(setting.text) ? new URL(setting.text) : undefined;
  const isUsable =
    url && /^rediss?:$/.test(url.protocol) && url.hostname !== '' && /^(\/\d*)?$/.test(url.pathname);
  if (!isUsable || url.search || url.hash || !isEncoded(url.username) || !isEncoded(url.password))
    throw new ConfigError(
      `${setting.origin}: not an address of a Redis; write redis://HOST:PORT or rediss://USER:PASSWORD@HOST:PORT/NUMBER, with signs like @ and % in a password percent-encoded`,
    );
  return setting.text;
}

function isEncoded(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}

/** A setting that says which drive, beside a file that says it for each: one of the two would be ignored. */
function refuseBesideDrives(settings: Settings, origin: string): void {
  const name = [...DRIVE_SETTINGS].find((candidate) => settings.has(candidate));
  if (name)
    throw new ConfigError(
      `${settings.get(name)?.origin}: ${origin} has "drives"; say it there, for one of them`,
    );
}

function tlsOf(settings: Settings): Config['tls'] {
  const cert = settings.get('tls-cert');
  const key = settings.get('tls-key');
  if (!cert && !key) return undefined;
  if (!cert) throw new ConfigError(`${key?.origin}: a key without its certificate; give --tls-cert too`);
  if (!key) throw new ConfigError(`${cert.origin}: a certificate without its key; give --tls-key too`);
  return { certFile: cert.text, keyFile: key.text };
}

function driveOf(name: string, settings: Settings, login: KeptLogin | undefined): DriveConfig {
  return {
    name,
    service: login ? serviceOfLogin(settings, login) : serviceOf(settings),
    root: rootOf(settings.get('root')),
    deletePolicy: oneOf(settings.get('delete'), ['auto', 'permanent', 'trash']),
  };
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

interface KeptLogin extends StoredLogin {
  readonly file: string;
}

/** What `davgate login` left, unless the settings name a token themselves. */
function keptLogin(settings: Settings, dataDirectory: string): KeptLogin | undefined {
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
  const url = URL.canParse(setting.text) ? new URL(setting.text) : undefined;
  if (!url || !/^https?:$/.test(url.protocol) || url.search || url.hash)
    throw new ConfigError(
      `${setting.origin}: "${setting.text}" is not an address like https://api.example.com`,
    );
  return setting.text.replace(/\/+$/, '');
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
  if (token) return { token: token.text };
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

function rootOf(setting: Setting | undefined): string {
  const text = setting?.text.replace(/\/+$/, '') ?? '';
  if (setting && text !== '' && !/^(\/[^/\0]+)+$/.test(text))
    throw new ConfigError(
      `${setting.origin}: "${setting.text}" is not a folder's path; write for example /Team/Plans`,
    );
  return text.normalize('NFC');
}

function usersOf(
  settings: Settings,
  file: ConfigFile | undefined,
  listen: Address,
  drives: readonly DriveConfig[],
): readonly UserConfig[] | undefined {
  const open = settings.get('no-auth');
  const user = settings.get('user');
  const password = settings.get('password');
  if (open && isOn(open)) {
    const clash = user ?? password;
    if (clash)
      throw new ConfigError(
        `${open.origin}: no user and no password, yet ${clash.origin} is given; leave one out`,
      );
    if (!isLoopback(listen.host))
      throw new ConfigError(
        `${open.origin}: ${listen.host} can be reached from outside; drop it, or listen on 127.0.0.1`,
      );
    return undefined;
  }
  if (file?.users) return file.users.map((row) => knownDrive(row, drives, file.origin));
  if (user?.text.includes(':')) throw new ConfigError(`${user.origin}: a user's name may not hold a colon`);
  if (password?.text === '')
    throw new ConfigError(`${password.origin}: empty; write a password, or use --no-auth`);
  const drive = drives[0]?.name ?? DEFAULT_DRIVE;
  return [{ name: user?.text ?? DEFAULT_USER, drive, ...(password && { password: password.text }) }];
}

function isOn({ text, origin }: Setting): boolean {
  if (text === 'true' || text === '1') return true;
  if (text === 'false' || text === '0' || text === '') return false;
  throw new ConfigError(`${origin}: "${text}" is neither true nor false`);
}

function knownDrive(user: UserConfig, drives: readonly DriveConfig[], origin: string): UserConfig {
  if (drives.some((drive) => drive.name === user.drive)) return user;
  const names = drives.map((drive) => drive.name).join(', ');
  throw new ConfigError(
    `users in ${origin}: the drive "${user.drive}" of user ${user.name} is none of ${names}`,
  );
}
