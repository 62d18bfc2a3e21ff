import { readFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { type Address, parseUrl } from '../../config/address.ts';
import { type Config, controlSocketIn, resolveConfig } from '../../config/configuration.ts';
import { ConfigError, refuseUnsayable } from '../../config/settings.ts';
import type { UserConfig } from '../../config/user-rows.ts';
import { StateInUse } from '../../state/errors.ts';
import { PACKAGE_ROOT } from '../../util/package.ts';
import { ControlClient } from '../control-client.ts';
import { withDialog } from '../dialog.ts';
import type { LoadedSettings } from '../load-settings.ts';
import { type Drive, MountError } from './clients.ts';

/**
 * Returns the address of the drive: `url` if given, otherwise that of the davgate that runs with this configuration. Throws
 * `ConfigError`.
 */
export async function addressOfDrive(
  url: string | undefined,
  loaded: LoadedSettings,
  environment: NodeJS.ProcessEnv,
): Promise<string> {
  if (url !== undefined) return `${parseUrl({ text: url, origin: '--url' }, 'https://drive.example.com/')}/`;
  const config = configOf(loaded, environment);
  // The certificate is for the public name, and clients check that.
  const { listen } = config;
  const isSocket = 'socketPath' in listen;
  if ((config.tls || isSocket) && config.publicUrl !== undefined) return `${config.publicUrl}/`;
  if (isSocket)
    throw new MountError(
      `davgate listens on unix:${listen.socketPath}, which cannot be mounted; give --url, the address of the reverse proxy`,
    );
  const known = 'host' in listen ? listen : { host: 'localhost', port: 0 };
  return (await runningAddress(config)) ?? configuredAddress(config, known);
}

/** Returns the address of the davgate that uses the data directory; `undefined` if none says it. */
async function runningAddress(config: Config): Promise<string | undefined> {
  try {
    const answer = await new ControlClient(controlSocketIn(config), config.dataDirectory).ask(
      'GET',
      '/address',
    );
    return typeof answer === 'string' ? answer : undefined;
  } catch (error) {
    if (error instanceof StateInUse) return undefined;
    throw error;
  }
}

function configuredAddress({ tls, dataDirectory, basePath }: Config, { host, port }: Address): string {
  if (port === 0)
    throw new MountError(
      `no davgate runs with ${dataDirectory}; start one with davgate serve, or give --url`,
    );
  const name =
    host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '[::1]' : host.includes(':') ? `[${host}]` : host;
  return `${tls ? 'https' : 'http'}://${name}:${port}${basePath}/`;
}

/** Throws `MountError` unless a server listens at `url`. */
export async function refuseUnreachable(url: string): Promise<void> {
  const { hostname, port, protocol } = new URL(url);
  const host = hostname.replace(/^\[|\]$/g, '');
  const number = port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port);
  await new Promise<void>((resolve, reject) => {
    const socket = connect(number, host, () => {
      socket.destroy();
      resolve();
    });
    socket.once('error', (error: NodeJS.ErrnoException) =>
      reject(
        new MountError(
          `nothing answers at ${url} (${error.code}); start davgate serve, or give another --url`,
        ),
      ),
    );
  });
}

/**
 * Returns the user and the password: those of the settings, the made-up password, or what the person types. `undefined`: the
 * drive needs no login. `url` is that of a drive elsewhere, whose users are not in the configuration. Throws `ConfigError`.
 */
export async function loginFor(
  url: string | undefined,
  loaded: LoadedSettings,
  environment: NodeJS.ProcessEnv,
): Promise<Drive['login']> {
  const { settings } = loaded;
  // Some clients read the login as lines.
  for (const name of ['user', 'password'] as const) {
    const setting = settings.get(name);
    if (setting) refuseUnsayable(setting);
  }
  const [user, given] = [settings.get('user')?.text, settings.get('password')?.text];
  if (url !== undefined) {
    if (settings.get('no-auth')?.text === 'true') return undefined;
    if (user === undefined)
      throw new ConfigError('--url: the user is missing; give --user NAME, or --no-auth');
    return { user, password: given ?? (await typedPassword(user)) };
  }
  const config = configOf(loaded, environment);
  if (!config.users) return undefined;
  const { name, password, passwordHash, isListedElsewhere } = userNamed(user, config.users, config);
  const isMadeUp = password === undefined && passwordHash === undefined && !isListedElsewhere;
  const known = given ?? password ?? (isMadeUp ? await madeUpPassword(config) : undefined);
  return { user: name, password: known ?? (await typedPassword(name)) };
}

/** Beside the users of a file, which exclude them, `user` and `password` choose one of those users here. */
function configOf({ settings, file }: LoadedSettings, environment: NodeJS.ProcessEnv): Config {
  const isChoice = (name: string) => file?.users !== undefined && (name === 'user' || name === 'password');
  const others = new Map([...settings].filter(([name]) => !isChoice(name)));
  return resolveConfig(others, file, environment, PACKAGE_ROOT);
}

/** Users of an htpasswd file or an external check need no row of their own. */
function userNamed(
  user: string | undefined,
  users: readonly UserConfig[],
  { htpasswdFile, authUrl }: Config,
): UserConfig {
  const [sole, ...others] = users;
  if (user === undefined && sole && others.length === 0) return sole;
  const names = users.map(({ name }) => name).join(', ');
  if (user === undefined)
    throw new ConfigError(
      `--user: the name is missing${names && `, and the users are ${names}`}; give --user NAME`,
    );
  const found = users.find(({ name }) => name === user.normalize('NFC'));
  if (found) return found;
  if (htpasswdFile !== undefined || authUrl !== undefined)
    return { name: user, grants: [], isListedElsewhere: true };
  throw new ConfigError(`--user: "${user}" is not one of ${names}`);
}

/** Returns the password that the running davgate made up. */
async function madeUpPassword({ dataDirectory }: Config): Promise<string | undefined> {
  try {
    return (await readFile(join(dataDirectory, 'password'), 'utf8')).trim() || undefined;
  } catch {
    return undefined;
  }
}

async function typedPassword(user: string): Promise<string> {
  if (!process.stdin.isTTY)
    throw new ConfigError(
      `mount: the password of ${user} is missing; give --password-file FILE or DAVGATE_PASSWORD, or run this in a terminal`,
    );
  const password = await withDialog((dialog) => dialog.askHidden(`Password of ${user}: `));
  if (password) return password;
  throw new ConfigError(`mount: no password was typed for ${user}`);
}
