import { isDeepStrictEqual } from 'node:util';
import type { Config } from '../config/configuration.ts';

/** Parts of a configuration that hold while davgate runs, and the settings they come from. */
const FIXED = {
  listen: 'listen',
  publicUrl: 'public-url',
  trustedProxies: 'trusted-proxy',
  crossOrigins: 'cors-origin',
  dataDirectory: 'data-dir',
  cacheDirectory: 'cache-dir',
  writeMode: 'write-mode',
  redisUrl: 'redis',
} as const satisfies Readonly<Record<Exclude<keyof Config, 'tls' | 'users' | 'drives'>, string>>;

/** Returns the settings that differ in `next` and cannot change while davgate runs, for people. */
export function settingsForNextStart(running: Config, next: Config): readonly string[] {
  const fixed = Object.keys(FIXED) as (keyof typeof FIXED)[]; // its own keys, which TypeScript calls strings
  const changed = fixed.filter((key) => !isDeepStrictEqual(running[key], next[key]));
  const names: string[] = changed.map((key) => FIXED[key]);
  if (!running.tls !== !next.tls) names.push('tls-cert');
  if (!running.users !== !next.users) names.push('no-auth');
  return [...names, ...changedDrives(running, next)];
}

function changedDrives(running: Config, next: Config): readonly string[] {
  const drives = new Map([...running.drives, ...next.drives].map(({ name }) => [name, name]));
  const of = ({ drives: all }: Config, name: string) => all.find((drive) => drive.name === name);
  return [...drives.keys()]
    .filter((name) => !isDeepStrictEqual(of(running, name), of(next, name)))
    .map((name) => `drive ${name}`);
}

/** Returns the users whose drives run; one whose drive does not has to wait for the next start. */
export function usersOfRunningDrives<User extends { readonly drive: string }>(
  users: readonly User[],
  { drives }: Config,
): readonly User[] {
  return users.filter((user) => drives.some(({ name }) => name === user.drive));
}
