import { accessSync, constants } from 'node:fs';
import { join, resolve } from 'node:path';
import type { BasePath } from '../util/base-path.ts';
import type { PageLook } from '../util/look.ts';
import { type Networks, UNIX_PEER } from '../util/networks.ts';
import { redisAddressOf } from '../util/redis-address.ts';
import { authUrlOf, basePathOf, type Listen, parseListen, parseUrl, trustedProxiesOf } from './address.ts';
import { bandwidthOf } from './bandwidth.ts';
import { brandOf } from './brand.ts';
import { collect, collectAll } from './collect.ts';
import type { ConfigFile } from './config-file.ts';
import { type DriveConfig, driveOf, keptLogin } from './drive-config.ts';
import type { Bandwidth } from './grant.ts';
import { type OidcConfig, oidcOf } from './oidc.ts';
import {
  ConfigError,
  DRIVE_SETTINGS,
  isOn,
  oneOf,
  type Setting,
  type Settings,
  SHARED_DRIVE_SETTINGS,
} from './settings.ts';
import { type TlsConfig, tlsOf } from './tls.ts';
import type { UserConfig } from './user-rows.ts';
import { DEFAULT_DRIVE, usersOf } from './users.ts';
import { cacheHome, dataHome } from './xdg.ts';

/** Maximum of `--drain-seconds`; balancers notice within a few checks. */
const DRAIN_SECONDS_MAX = 600;

/** The configuration of a gateway. */
export interface Config {
  readonly listen: Listen;
  /** File that is there while clients can connect. */
  readonly readyFile?: string | undefined;
  /** Origins of web pages that may use the drive. */
  readonly crossOrigins: readonly string[];
  /** How long davgate still takes requests after it was asked to stop; `undefined`: not at all. */
  readonly drainSeconds?: number | undefined;
  /** The path below which the drive is served; `''` for none. */
  readonly basePath: BasePath;
  /** Proxies that are believed about a client's address, host and path. */
  readonly trustedProxies: Networks;
  readonly tls: TlsConfig | undefined;
  /** Ends with `basePath`, without a slash; `undefined`: the address that davgate listens on. */
  readonly publicUrl: string | undefined;
  readonly dataDirectory: string;
  readonly cacheDirectory: string;
  /** Whether a write is acknowledged when the service has it, or when it is in the journal in the data directory. */
  readonly writeMode: 'through' | 'back';
  /** The files that have checksums: see `--checksums`. `undefined`: `given`. */
  readonly checksums?: 'given' | 'all' | undefined;
  /** Whether WebDAV shows folders with former versions and deleted files. */
  readonly hasHistoryFolders?: boolean;
  /** The Redis with the state that several gateways share; `undefined`: the state is in the data directory. */
  readonly redisUrl: string | undefined;
  /** Whether gateways on one Redis show each other's changes at once. The default is `strict`. */
  readonly coherence?: 'strict' | 'feed' | undefined;
  /** Whether that Redis may forget the state when it stops. */
  readonly isRedisVolatile?: boolean;
  /** Maximum rates of all users together. */
  readonly bandwidth?: Bandwidth | undefined;
  readonly log: LogConfig;
  /** Whether each request is logged. */
  readonly logRequests: boolean;
  readonly drives: readonly DriveConfig[];
  /** A file of Apache's `htpasswd`. Its users get the first drive, or those of the user in `users` with the same name. */
  readonly htpasswdFile?: string | undefined;
  /** Checks the logins of users without a password here. */
  readonly authUrl?: string | undefined;
  /** The OpenID Connect provider at which people sign in with a browser. */
  readonly oidc?: OidcConfig | undefined;
  /** How the pages in a browser present the drive. */
  readonly brand?: PageLook | undefined;
  /** `undefined`: everyone may use the first drive. */
  readonly users: readonly UserConfig[] | undefined;
}

/** The log. */
export interface LogConfig {
  /** The file that it is added to; `undefined`: standard error. */
  readonly file?: string | undefined;
  /** The least important level that is written. */
  readonly level: 'info' | 'warn' | 'error';
  readonly format: 'text' | 'json';
}

/** Combines the settings with those of a configuration file, checks them and fills in the defaults. Throws `ConfigError`. */
export function resolveConfig(
  settings: Settings,
  file: ConfigFile | undefined,
  environment: NodeJS.ProcessEnv,
  packageRoot: string,
): Config {
  const dataDirectory = dataDirectoryOf(settings, environment);
  const config = collect<Omit<Config, 'users'>>({
    listen: () => listenOf(settings),
    readyFile: () => pathOf(settings.get('ready-file')),
    drainSeconds: () => drainSecondsOf(settings.get('drain-seconds')),
    crossOrigins: () => crossOriginsOf(settings.get('cors-origin')),
    basePath: () => basePathOf(settings.get('base-path')),
    trustedProxies: () =>
      trustedProxiesOf(settings.get('trusted-proxy'), mayBeSocket(settings) ? [UNIX_PEER] : []),
    tls: () => tlsOf(settings),
    publicUrl: () => publicUrlOf(settings.get('public-url')),
    dataDirectory: () => dataDirectory,
    cacheDirectory: () =>
      resolve(settings.get('cache-dir')?.text ?? defaultCacheDirectory(environment, packageRoot)),
    writeMode: () => writeModeOf(settings),
    checksums: () => oneOf<'given' | 'all'>(settings.get('checksums'), ['given', 'all']),
    hasHistoryFolders: () => isOn(settings.get('history-folders')),
    redisUrl: () => redisUrlOf(settings.get('redis')),
    coherence: () => oneOf<'strict' | 'feed'>(settings.get('coherence'), ['strict', 'feed']),
    isRedisVolatile: () => isOn(settings.get('redis-volatile')),
    bandwidth: () => bandwidthOf(settings),
    log: () => logOf(settings),
    logRequests: () => oneOf(settings.get('log-requests'), ['on', 'off']) === 'on',
    drives: () => drivesOf(settings, file, dataDirectory),
    htpasswdFile: () => settings.get('htpasswd')?.text,
    authUrl: () => authUrlOf(settings.get('auth-url')),
    oidc: () => oidcOf(settings),
    brand: () => brandOf(settings),
  });
  return {
    ...config,
    publicUrl: withBasePath(config.publicUrl, config.basePath),
    users: usersOf(settings, file, config),
  };
}

function isSocket(settings: Settings): boolean {
  return settings.get('listen')?.text.startsWith('unix:') === true;
}

/** Whether clients may come by a Unix socket, as a socket unit of systemd may have one too. */
function mayBeSocket(settings: Settings): boolean {
  return isSocket(settings) || settings.get('listen')?.text === 'systemd';
}

function pathOf(setting: Setting | undefined): string | undefined {
  return setting && resolve(setting.text);
}

/** Throws `ConfigError`. */
function drainSecondsOf(setting: Setting | undefined): number | undefined {
  if (!setting) return undefined;
  const seconds = /^\d+$/.test(setting.text) ? Number(setting.text) : Number.NaN;
  if (!(seconds <= DRAIN_SECONDS_MAX))
    throw new ConfigError(
      `${setting.origin}: "${setting.text}" must be a whole number of seconds, at most ${DRAIN_SECONDS_MAX}`,
    );
  return seconds;
}

function listenOf(settings: Settings): Listen {
  const tls = settings.get('tls-cert') ?? settings.get('tls-key');
  if (tls && isSocket(settings))
    throw new ConfigError(
      `${tls.origin}: davgate serves no https on a Unix socket; leave it out, and give the reverse proxy the certificate`,
    );
  const setting = settings.get('listen') ?? { text: '127.0.0.1:8765', origin: '--listen' };
  return parseListen(setting, settings.get('socket-mode'));
}

function drivesOf(
  settings: Settings,
  file: ConfigFile | undefined,
  dataDirectory: string,
): readonly DriveConfig[] {
  if (!file?.drives) return [driveOf(DEFAULT_DRIVE, settings, keptLogin(settings, dataDirectory))];
  refuseBesideDrives(settings, file);
  const shared = [...file.settings].filter(([name]) => SHARED_DRIVE_SETTINGS.has(name));
  return collectAll(
    file.drives.map((drive) => () => driveOf(drive.name, new Map([...shared, ...drive.settings]), undefined)),
  );
}

/** Returns the settings of the log. Throws `ConfigError`. */
export function logOf(settings: Settings): LogConfig {
  return {
    file: pathOf(settings.get('log-file')),
    level: oneOf(settings.get('log-level'), ['info', 'warn', 'error']),
    format: oneOf(settings.get('log-format'), ['text', 'json']),
  };
}

/** Returns the directory of everything durable. */
export function dataDirectoryOf(settings: Settings, environment: NodeJS.ProcessEnv): string {
  return resolve(settings.get('data-dir')?.text ?? join(dataHome(environment), 'davgate'));
}

/** Returns the socket on which the davgate that uses a data directory takes commands. */
export function controlSocketIn({ dataDirectory }: Pick<Config, 'dataDirectory'>): string {
  return join(dataDirectory, 'state', 'control.sock');
}

function defaultCacheDirectory(environment: NodeJS.ProcessEnv, packageRoot: string): string {
  const ofCheckout = join(packageRoot, 'cache');
  try {
    accessSync(ofCheckout, constants.W_OK);
    return ofCheckout;
  } catch {
    return join(cacheHome(environment), 'davgate');
  }
}

function publicUrlOf(setting: Setting | undefined): string | undefined {
  return setting && parseUrl(setting, 'https://drive.example.com');
}

/** Adds the base path to a URL that does not end with it. */
function withBasePath(url: string | undefined, basePath: BasePath): string | undefined {
  return url?.endsWith(basePath) === false ? url + basePath : url;
}

/** Parses origins. Refuses `*`, because any visited page could then try to log in. */
function crossOriginsOf(setting: Setting | undefined): readonly string[] {
  const origins = setting?.text.split(',').map((text) => text.trim()) ?? [];
  for (const origin of origins)
    if (!URL.canParse(origin) || new URL(origin).origin !== origin || !/^https?:/.test(origin))
      throw new ConfigError(
        `${setting?.origin}: "${origin}" is not an origin of web pages; write https://HOST or https://HOST:PORT, without a path`,
      );
  return origins;
}

function writeModeOf(settings: Settings): Config['writeMode'] {
  const setting = settings.get('write-mode');
  const mode = oneOf(setting, ['through', 'back']);
  const redis = settings.get('redis');
  if (mode === 'back' && redis)
    throw new ConfigError(
      `${setting?.origin}: "back" keeps writes in one gateway's journal, which the gateways that share ${redis.origin} do not see; leave one out`,
    );
  return mode;
}

/** Checks the address of a Redis. Its error does not quote the text, which may contain a password. */
function redisUrlOf(setting: Setting | undefined): string | undefined {
  if (!setting) return undefined;
  if (!redisAddressOf(setting.text))
    throw new ConfigError(
      `${setting.origin}: not the address of a Redis; write redis://HOST:PORT, rediss://USER:PASSWORD@HOST:PORT/NUMBER, redis+sentinel://HOST:PORT,HOST:PORT/NAME or redis+cluster://HOST:PORT,HOST:PORT, with @, % and the like in a password percent-encoded`,
    );
  return setting.text;
}

/** Refuses a drive's setting that the drives of the file would not use. */
function refuseBesideDrives(settings: Settings, file: ConfigFile): void {
  const setting = [...DRIVE_SETTINGS]
    .filter((name) => !(SHARED_DRIVE_SETTINGS.has(name) && file.settings.get(name) === settings.get(name)))
    .map((name) => settings.get(name))
    .find((found) => found);
  if (setting)
    throw new ConfigError(`${setting.origin}: ${file.origin} has "drives"; write it there, for one of them`);
}
