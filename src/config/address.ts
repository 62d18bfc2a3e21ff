import { type BasePath, parseBasePath } from '../util/base-path.ts';
import { isLoopback, Networks } from '../util/networks.ts';
import { ConfigError, type Setting } from './settings.ts';

/** An address to listen on. */
export interface Address {
  readonly host: string;
  readonly port: number;
}

/** A Unix socket, and the permissions of its file. */
export interface SocketAddress {
  readonly socketPath: string;
  readonly mode: number;
}

/** A socket that a service manager has opened and passes to davgate. */
interface PassedSocket {
  readonly passedBy: 'systemd';
}

/** Where a gateway listens. */
export type Listen = Address | SocketAddress | PassedSocket;

/** By default the user and the group may connect. */
const SOCKET_MODE = 0o660;

/** Parses `HOST:PORT`. Throws `ConfigError`. */
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

/** Parses the address of the gateway: `HOST:PORT`, `unix:PATH` or `systemd`. Throws `ConfigError`. */
export function parseListen(setting: Setting, socketMode: Setting | undefined): Listen {
  const [, path] = /^unix:(.*)$/.exec(setting.text) ?? [];
  if (path === undefined && socketMode)
    throw new ConfigError(
      `${socketMode.origin}: needs a Unix socket; write --listen unix:PATH, or leave it out`,
    );
  if (setting.text === 'systemd') return { passedBy: 'systemd' };
  if (path === undefined) return parseAddress(setting);
  if (!path.startsWith('/'))
    throw new ConfigError(
      `${setting.origin}: "${setting.text}" is not unix:PATH; write for example unix:/run/davgate/davgate.sock`,
    );
  return { socketPath: path, mode: socketModeOf(socketMode) };
}

function socketModeOf(setting: Setting | undefined): number {
  if (!setting) return SOCKET_MODE;
  if (/^0?[0-7]{3}$/.test(setting.text)) return Number.parseInt(setting.text, 8);
  throw new ConfigError(
    `${setting.origin}: "${setting.text}" is not a file mode; write three octal digits like 660`,
  );
}

/** Parses an http or https URL without a login and a query, and removes slashes at its end. Throws `ConfigError`. */
export function parseUrl({ text, origin }: Setting, example: string): string {
  // Not quoted: the text before the @ may be a password.
  if (text.includes('@'))
    throw new ConfigError(`${origin}: contains a login; write an address like ${example}`);
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !/^https?:$/.test(url.protocol) || url.search || url.hash)
    throw new ConfigError(`${origin}: "${text}" is not an address like ${example}`);
  return text.replace(/\/+$/, '');
}

/**
 * Parses the URL to which logins are sent. Throws `ConfigError`, also for http, over which others could read passwords,
 * except on this machine.
 */
export function authUrlOf(setting: Setting | undefined): string | undefined {
  if (!setting) return undefined;
  const example = 'https://login.example.com/check';
  parseUrl({ ...setting, text: setting.text.replace(/\?[^#]*/, '') }, example);
  return encryptedUrlOf(setting, example, 'passwords');
}

/** Returns a valid URL. Throws `ConfigError` for http, over which others could read `secrets`, except on this machine. */
export function encryptedUrlOf({ text, origin }: Setting, example: string, secrets: string): string {
  const { protocol, hostname } = new URL(text);
  if (protocol === 'https:' || isLoopback(hostname.replace(/^\[|\]$/g, ''))) return text;
  throw new ConfigError(
    `${origin}: ${secrets} would cross the network unencrypted; write an address like ${example}, or one of this machine`,
  );
}

/** Parses the path below which the drive is served; `''` without one. Throws `ConfigError`. */
export function basePathOf(setting: Setting | undefined): BasePath {
  const base = parseBasePath(setting?.text ?? '');
  if (base === undefined)
    throw new ConfigError(
      `${setting?.origin}: "${setting?.text}" is not a path like /drive; begin it with a slash, and percent-encode blanks and special characters`,
    );
  return base;
}

/** Parses a list of networks, separated by commas, and adds `more`. Throws `ConfigError`. */
export function trustedProxiesOf(setting: Setting | undefined, more: readonly string[] = []): Networks {
  const cidrs = [...(setting?.text.split(',').map((cidr) => cidr.trim()) ?? []), ...more];
  try {
    return new Networks(cidrs);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new ConfigError(
      `${setting?.origin}: "${error.message}" is neither a network nor an address; write for example 10.0.0.0/8 or 127.0.0.1, separated by commas`,
    );
  }
}
