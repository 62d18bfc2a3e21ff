import { ConfigError, type Setting } from './settings.ts';

export interface Address {
  readonly host: string;
  readonly port: number;
}

/** Loopback is safe without a password and without encryption. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){1,3}$/.test(host);
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

/** An http or https address without a login, a query and slashes at its end. Throws `ConfigError`. */
export function parseUrl({ text, origin }: Setting, example: string): string {
  // Not quoted: what stands before the @ may be a password.
  if (text.includes('@'))
    throw new ConfigError(`${origin}: an address like ${example} is wanted, without a login in it`);
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !/^https?:$/.test(url.protocol) || url.search || url.hash)
    throw new ConfigError(`${origin}: "${text}" is not an address like ${example}`);
  return text.replace(/\/+$/, '');
}
