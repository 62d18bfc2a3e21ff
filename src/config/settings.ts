import { similarTo } from '../util/similar.ts';
import { BRAND_OPTIONS } from './brand-options.ts';
import { DRIVE_OPTIONS } from './drive-options.ts';
import { OIDC_OPTIONS } from './oidc-options.ts';
import { REDIS_OPTIONS } from './redis-options.ts';
import { TLS_OPTIONS } from './tls-options.ts';

/** Settings that cannot be used. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  /** One line for each setting, which names it and says what to do. */
  readonly problems: readonly string[];

  constructor(first: string, ...more: readonly string[]) {
    super(more.length === 0 ? first : `${first} (and ${more.length} more: davgate config check lists them)`);
    this.problems = [first, ...more];
  }
}

interface Option {
  /** Its flag is `--name`, its key in a configuration file `name`. */
  readonly name: string;
  readonly variable: string;
  /** Placeholder for the value in `--help`; none for a switch. */
  readonly value?: string;
  /** `false` for a secret, which may come only from the environment or a file: command lines are public. */
  readonly flag?: false;
  /** Whether no output may show the value. */
  readonly isSecret?: true;
  /** The value without the setting, if it is always the same. */
  readonly default?: string;
  readonly help: string;
}

/** All settings: the source of `--help`, the variables, the file's keys and the reference page. */
export const OPTIONS = [
  {
    name: 'listen',
    variable: 'DAVGATE_LISTEN',
    value: 'HOST:PORT',
    default: '127.0.0.1:8765',
    help: 'where to serve; unix:PATH is a Unix socket, for a reverse proxy on this machine, and systemd the socket that a socket unit passes',
  },
  {
    name: 'socket-mode',
    variable: 'DAVGATE_SOCKET_MODE',
    value: 'MODE',
    default: '660',
    help: 'permissions of the Unix socket, octal',
  },
  {
    name: 'ready-file',
    variable: 'DAVGATE_READY_FILE',
    value: 'FILE',
    help: 'file that holds the address while clients can connect, for scripts that wait for davgate',
  },
  {
    name: 'drain-seconds',
    variable: 'DAVGATE_DRAIN_SECONDS',
    value: 'N',
    default: '0',
    help: 'how long davgate still takes requests after SIGTERM, in seconds, at most 600, while /.davgate/readyz answers 503 so that load balancers send them elsewhere',
  },
  {
    name: 'api-url',
    variable: 'DAVGATE_API_URL',
    value: 'URL',
    help: "the service's base_url. Without a URL, a token and a login, davgate runs the embedded service",
  },
  {
    name: 'content-url',
    variable: 'DAVGATE_CONTENT_URL',
    value: 'URL',
    help: "the service's content_url; default: the api-url, or the public service's",
  },
  {
    name: 'notify-url',
    variable: 'DAVGATE_NOTIFY_URL',
    value: 'URL',
    help: "the service's notify_url, for long polls; default: the api-url, or the public service's",
  },
  {
    name: 'token',
    variable: 'DAVGATE_TOKEN',
    value: 'T',
    isSecret: true,
    help: 'a fixed access token',
  },
  {
    name: 'token-file',
    variable: 'DAVGATE_TOKEN_FILE',
    value: 'FILE',
    help: 'file with the access token',
  },
  {
    name: 'app-key',
    variable: 'DAVGATE_APP_KEY',
    value: 'KEY',
    flag: false,
    help: "the app's key; davgate then gets access tokens with the refresh token",
  },
  {
    name: 'app-secret',
    variable: 'DAVGATE_APP_SECRET',
    value: 'SECRET',
    flag: false,
    isSecret: true,
    help: "the app's secret; not needed if the refresh token was issued to a public client",
  },
  {
    name: 'refresh-token',
    variable: 'DAVGATE_REFRESH_TOKEN',
    value: 'TOKEN',
    flag: false,
    isSecret: true,
    help: 'a long-lived refresh token',
  },
  {
    name: 'account',
    variable: 'DAVGATE_ACCOUNT',
    value: 'EMAIL',
    help: 'account of the embedded service that owns the files; default: one for each drive',
  },
  {
    name: 'root',
    variable: 'DAVGATE_ROOT',
    value: 'PATH',
    help: "folder of the account that becomes the drive's root; default: the whole account",
  },
  {
    name: 'namespace',
    variable: 'DAVGATE_NAMESPACE',
    value: 'home|root|NUMBER',
    default: 'home',
    help: "where the account's paths begin: home is the member's own folder, root the team's space with its shared folders",
  },
  {
    name: 'user',
    variable: 'DAVGATE_USER',
    value: 'NAME',
    default: 'davgate',
    help: 'the user who may mount the drive',
  },
  {
    name: 'password',
    variable: 'DAVGATE_PASSWORD',
    value: 'P',
    isSecret: true,
    help: "that user's password; default: davgate makes one and stores it in the data directory",
  },
  {
    name: 'password-file',
    variable: 'DAVGATE_PASSWORD_FILE',
    value: 'FILE',
    help: 'file with the password',
  },
  {
    name: 'htpasswd',
    variable: 'DAVGATE_HTPASSWD',
    value: 'FILE',
    help: "file with users and password hashes (bcrypt, apr1 or {SHA}), as Apache's htpasswd writes it; read again at a reload",
  },
  {
    name: 'auth-url',
    variable: 'DAVGATE_AUTH_URL',
    value: 'URL',
    help: 'where davgate asks about the login of a user who has no password here: a GET with the login as Basic credentials; 2xx accepts it, 401 and 403 refuse it',
  },
  ...OIDC_OPTIONS,
  ...BRAND_OPTIONS,
  {
    name: 'no-auth',
    variable: 'DAVGATE_NO_AUTH',
    help: 'no user and no password; only for loopback addresses',
  },
  ...TLS_OPTIONS,
  {
    name: 'public-url',
    variable: 'DAVGATE_PUBLIC_URL',
    value: 'URL',
    help: "the address at which people reach this davgate, with its path; shared links of the embedded service begin with it. Default: the --listen address, with this machine's name for 0.0.0.0",
  },
  {
    name: 'base-path',
    variable: 'DAVGATE_BASE_PATH',
    value: '/PATH',
    help: 'serve the drive below this path, for a reverse proxy that passes the path on; default: at the root',
  },
  {
    name: 'cors-origin',
    variable: 'DAVGATE_CORS_ORIGIN',
    value: 'ORIGIN',
    help: 'origins of web pages that may use the drive, like https://app.keeweb.info, separated by commas',
  },
  {
    name: 'trusted-proxy',
    variable: 'DAVGATE_TRUSTED_PROXY',
    value: 'CIDR',
    help: 'reverse proxies whose Forwarded and X-Forwarded-* headers (For, Host, Proto, Prefix) are trusted, as networks separated by commas',
  },
  {
    name: 'cache-dir',
    variable: 'DAVGATE_CACHE_DIR',
    value: 'DIR',
    help: 'disposable block cache; default cache/ of the checkout, else $XDG_CACHE_HOME/davgate',
  },
  {
    name: 'data-dir',
    variable: 'DAVGATE_DATA_DIR',
    value: 'DIR',
    help: "locks, properties, the journal and the embedded service's files; default $XDG_DATA_HOME/davgate",
  },
  ...DRIVE_OPTIONS,
  {
    name: 'write-mode',
    variable: 'DAVGATE_WRITE_MODE',
    value: 'through|back',
    default: 'through',
    help: 'when a write is acknowledged: when the service has it (through), or when it is in a journal on this disk (back)',
  },
  {
    name: 'checksums',
    variable: 'DAVGATE_CHECKSUMS',
    value: 'given|all',
    default: 'given',
    help: 'which files have checksums that clients can compare (oc:checksums): those uploaded with some (given), or all, which davgate reads once for that if it must',
  },
  {
    name: 'bandwidth-download',
    variable: 'DAVGATE_BANDWIDTH_DOWNLOAD',
    value: 'SIZE',
    help: 'maximum bytes of files that all clients together get in a second, like 10MB',
  },
  {
    name: 'bandwidth-upload',
    variable: 'DAVGATE_BANDWIDTH_UPLOAD',
    value: 'SIZE',
    help: 'maximum bytes of files that all clients together send in a second, like 10MB',
  },
  {
    name: 'config',
    variable: 'DAVGATE_CONFIG',
    value: 'FILE',
    help: 'file with the same settings as YAML or JSON, plus several users and drives; default $XDG_CONFIG_HOME/davgate/config.json, which davgate setup writes',
  },
  ...REDIS_OPTIONS,
  {
    name: 'log-file',
    variable: 'DAVGATE_LOG_FILE',
    value: 'FILE',
    help: 'file that the log is added to, opened again at a SIGHUP; default: standard error',
  },
  {
    name: 'log-level',
    variable: 'DAVGATE_LOG_LEVEL',
    value: 'info|warn|error',
    default: 'info',
    help: 'the lowest level that is logged',
  },
  {
    name: 'log-format',
    variable: 'DAVGATE_LOG_FORMAT',
    value: 'text|json',
    default: 'text',
    help: 'the format of the log',
  },
  {
    name: 'log-requests',
    variable: 'DAVGATE_LOG_REQUESTS',
    value: 'on|off',
    default: 'on',
    help: 'whether each request is logged, in a line of the level info',
  },
] as const satisfies readonly Option[];

export type SettingName = (typeof OPTIONS)[number]['name'];

/** Settings that each drive of a configuration file may have. */
export const DRIVE_SETTINGS: ReadonlySet<SettingName> = new Set([
  'api-url',
  'content-url',
  'notify-url',
  'token',
  'token-file',
  'app-key',
  'app-secret',
  'refresh-token',
  'account',
  'namespace',
  'root',
  'delete',
  'names',
  'local-files',
  'read-only',
]);

/** Settings of drives that may stand at the top of a configuration file, for all its drives. */
export const SHARED_DRIVE_SETTINGS: ReadonlySet<SettingName> = new Set([
  'api-url',
  'content-url',
  'notify-url',
  'app-key',
  'app-secret',
  'delete',
  'names',
  'local-files',
]);

/** A value as it was written, and where, for error messages. */
export interface Setting {
  readonly text: string;
  readonly origin: string;
}

export type Settings = ReadonlyMap<SettingName, Setting>;

const VARIABLE_PREFIX = 'DAVGATE_';

/** The variable of `davgate service` in place of `--metadata`. It is no setting: gateways run beside services. */
export const METADATA_VARIABLE = 'DAVGATE_METADATA';

/** Variables that Kubernetes sets in the containers of a service called `davgate`. They are not settings. */
const SERVICE_LINK = /^DAVGATE_(SERVICE_(HOST|PORT(_[A-Z0-9_]+)?)|PORT(_\d+_[A-Z]+(_(PROTO|PORT|ADDR))?)?)$/;

/** Returns the settings in `environment`. Throws `ConfigError` for an unknown `DAVGATE_…` variable, probably a typing error. */
export function settingsOfEnvironment(environment: NodeJS.ProcessEnv): Settings {
  const settings = new Map<SettingName, Setting>();
  for (const [variable, text] of Object.entries(environment)) {
    if (!variable.startsWith(VARIABLE_PREFIX) || text === undefined) continue;
    if (variable === METADATA_VARIABLE || SERVICE_LINK.test(variable)) continue;
    const option = OPTIONS.find((candidate) => candidate.variable === variable);
    if (!option) throw new ConfigError(`${variable}: no such setting${meantVariable(variable)}`);
    settings.set(option.name, notEmpty(option, { text, origin: variable }));
  }
  return settings;
}

function meantVariable(variable: string): string {
  // Without the prefix, which would hide how much the rest differs.
  const words = OPTIONS.map((option) => option.variable.slice(VARIABLE_PREFIX.length));
  const word = similarTo(variable.slice(VARIABLE_PREFIX.length), words);
  return word === undefined
    ? '; davgate serve --help lists the variables'
    : ` (did you mean "${VARIABLE_PREFIX}${word}"?)`;
}

/**
 * Throws `ConfigError` for an empty value. A missing secret must not make davgate serve something else, and an empty
 * directory must not mean the current one.
 */
export function notEmpty({ name, value }: Pick<Option, 'name' | 'value'>, setting: Setting): Setting {
  // An empty root is the whole account.
  if (setting.text.trim() !== '' || value === undefined || name === 'root') return setting;
  throw new ConfigError(`${setting.origin}: empty; write a value or leave it out`);
}

/**
 * Throws `ConfigError`, without the text, for a name or password with control characters: no login can contain them
 * (RFC 7617 §2), and files often end with a line break.
 */
export function refuseUnsayable({ text, origin }: Setting): void {
  if (/\p{Cc}/u.test(text))
    throw new ConfigError(
      `${origin}: contains a control character, perhaps a line break at its end; remove it`,
    );
}

/** Returns the explanation of a setting, with its default. */
export function helpOf({ help, ...option }: (typeof OPTIONS)[number]): string {
  return 'default' in option ? `${help}; default ${option.default}` : help;
}

/** Returns whether a switch is on. Throws `ConfigError`. */
export function isOn(setting: Setting | undefined): boolean {
  if (!setting) return false;
  const { text, origin } = setting;
  if (text === 'true' || text === '1') return true;
  if (text === 'false' || text === '0' || text === '') return false;
  throw new ConfigError(`${origin}: "${text}" must be true or false`);
}

/** Returns the value of `setting`, or the first of `values` without a setting. Throws `ConfigError` for any other value. */
export function oneOf<T extends string>(setting: Setting | undefined, values: readonly [T, ...T[]]): T {
  if (!setting) return values[0];
  const value = values.find((candidate) => candidate === setting.text);
  if (!value)
    throw new ConfigError(`${setting.origin}: "${setting.text}" is not one of ${values.join(', ')}`);
  return value;
}
