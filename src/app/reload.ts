import { isDeepStrictEqual } from 'node:util';
import type { Config } from '../config/configuration.ts';
import type { Grant } from '../config/grant.ts';
import type { TlsConfig } from '../config/tls.ts';
import type { User } from '../http/credentials.ts';
import type { GatewayServer } from '../http/gateway-server.ts';
import { loginsOf } from './logins.ts';

/** Fixed parts of a running configuration, and the settings that they come from. */
const FIXED = {
  listen: 'listen',
  readyFile: 'ready-file',
  publicUrl: 'public-url',
  basePath: 'base-path',
  trustedProxies: 'trusted-proxy',
  crossOrigins: 'cors-origin',
  dataDirectory: 'data-dir',
  cacheDirectory: 'cache-dir',
  drainSeconds: 'drain-seconds',
  writeMode: 'write-mode',
  checksums: 'checksums',
  redisUrl: 'redis',
  coherence: 'coherence',
  isRedisVolatile: 'redis-volatile',
  hasHistoryFolders: 'history-folders',
  authUrl: 'auth-url',
  oidc: 'oidc-*',
  brand: 'brand-*',
  bandwidth: 'bandwidth',
  logRequests: 'log-requests',
} as const satisfies Readonly<
  Record<Exclude<keyof Config, 'tls' | 'users' | 'htpasswdFile' | 'drives' | 'log'>, string>
>;

/**
 * Replaces the users and the certificate of a running gateway by those of `next`. Returns the other settings that differ:
 * they change at the next start. Throws before anything has changed.
 */
export async function reload(
  server: GatewayServer,
  running: Config,
  next: Config,
): Promise<readonly string[]> {
  const waiting = settingsForNextStart(running, next);
  const { users } = await loginsOf({ ...next, dataDirectory: running.dataDirectory }, server.users());
  server.reload({
    ...(running.users && users && { users: usersOfRunningDrives(users, running) }),
    ...(running.tls && next.tls && { tls: filesFor(running.tls, next.tls) }),
  });
  return waiting;
}

/** Returns the files of `next`. Whether clients need a certificate changes only at the next start. */
function filesFor({ clientCaFile: runningCa }: TlsConfig, next: TlsConfig): TlsConfig {
  return { ...next, clientCaFile: runningCa && (next.clientCaFile ?? runningCa) };
}

/** Returns the names of the settings that differ in `next` and cannot change while davgate runs. */
export function settingsForNextStart(running: Config, next: Config): readonly string[] {
  const fixed = Object.keys(FIXED) as (keyof typeof FIXED)[]; // its own keys, which TypeScript calls strings
  const changed = fixed.filter((key) => !isDeepStrictEqual(running[key], next[key]));
  const names: string[] = changed.map((key) => FIXED[key]);
  if (!running.tls !== !next.tls) names.push('tls-cert');
  if (!running.tls?.clientCaFile !== !next.tls?.clientCaFile) names.push('tls-client-ca');
  if (running.tls && next.tls && running.tls.hasHttp2 !== next.tls.hasHttp2) names.push('http2');
  if (!running.users !== !next.users) names.push('no-auth');
  return [...names, ...changedDrives(running, next)];
}

function changedDrives(running: Config, next: Config): readonly string[] {
  const names = new Set([...running.drives, ...next.drives].map(({ name }) => name));
  const driveIn = ({ drives }: Config, name: string) => drives.find((drive) => drive.name === name);
  return [...names]
    .filter((name) => !isDeepStrictEqual(driveIn(running, name), driveIn(next, name)))
    .map((name) => `drive ${name}`);
}

/** Leaves out drives that do not run yet, and users without any other. */
function usersOfRunningDrives(users: readonly User[], { drives }: Config): readonly User[] {
  const isRunning = ({ drive }: Grant) => drives.some(({ name }) => name === drive);
  return users
    .map((user) => ({ ...user, grants: user.grants.filter(isRunning) }))
    .filter(({ grants }) => grants.length > 0);
}
