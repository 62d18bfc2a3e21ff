import { isLoopback } from '../util/networks.ts';
import type { Listen } from './address.ts';
import { collectAll } from './collect.ts';
import type { ConfigFile } from './config-file.ts';
import type { DriveConfig } from './drive-config.ts';
import type { Grant } from './grant.ts';
import type { OidcConfig } from './oidc.ts';
import { ConfigError, isOn, refuseUnsayable, type Settings } from './settings.ts';
import { type UserConfig, WRITE_PASSWORD } from './user-rows.ts';

/** The name of the only drive, if the configuration names none. */
export const DEFAULT_DRIVE = 'default';
const DEFAULT_USER = 'davgate';

/** The parts of the configuration that the users depend on. */
interface Gateway {
  readonly listen: Listen;
  readonly drives: readonly DriveConfig[];
  readonly oidc?: OidcConfig | undefined;
}

/** Returns the users; `undefined`: no login is needed. Throws `ConfigError`. */
export function usersOf(
  settings: Settings,
  file: ConfigFile | undefined,
  { listen, drives, oidc }: Gateway,
): readonly UserConfig[] | undefined {
  const open = settings.get('no-auth');
  const user = settings.get('user');
  const password = settings.get('password');
  const authUrl = settings.get('auth-url');
  const issuer = settings.get('oidc-issuer');
  const passwordsElsewhere = settings.get('htpasswd') ?? authUrl;
  const listedElsewhere = passwordsElsewhere ?? issuer;
  const table = file?.users && `"users" in ${file.origin}`;
  if (open && isOn(open)) {
    const clash = user?.origin ?? password?.origin ?? listedElsewhere?.origin ?? table;
    if (clash)
      throw new ConfigError(
        `${open.origin}: excludes users and passwords, but ${clash} is given; leave one out`,
      );
    if ('host' in listen && !isLoopback(listen.host))
      throw new ConfigError(
        `${open.origin}: ${listen.host} can be reached from outside; drop it, or listen on 127.0.0.1`,
      );
    if ('passedBy' in listen)
      throw new ConfigError(
        `${open.origin}: the socket of systemd may be reached from outside; drop it, or listen on 127.0.0.1`,
      );
    refuseUnusedDrives(drives, open.origin);
    return undefined;
  }
  if (file?.users) {
    const beside = user ?? password;
    if (beside) throw new ConfigError(`${beside.origin}: ${table} lists the users; leave one out`);
    const rows = file.users.map(({ origin, ...user }) => () => {
      const hasPassword = user.password !== undefined || user.passwordHash !== undefined;
      if (!hasPassword && !listedElsewhere) throw new ConfigError(`${origin}: ${WRITE_PASSWORD}`);
      return knownDrive({ ...user, ...(!hasPassword && ELSEWHERE) }, drives, file.origin);
    });
    return collectAll(rows);
  }
  if (user?.text.includes(':')) throw new ConfigError(`${user.origin}: a user's name cannot contain a colon`);
  for (const setting of [user, password]) if (setting) refuseUnsayable(setting);
  // The external check may name any drive.
  if (file && !authUrl) refuseUnusedDrives(drives, file.origin);
  const drive = drives[0]?.name ?? DEFAULT_DRIVE;
  const name = user?.text.normalize('NFC') ?? DEFAULT_USER;
  if (listedElsewhere && !user && !password) {
    if (passwordsElsewhere || oidc?.users === 'all') return [];
    throw new ConfigError(
      `${issuer?.origin}: nobody may sign in; list "users" in a configuration file, or give --oidc-users all`,
    );
  }
  const login = password ? { password: password.text } : listedElsewhere && ELSEWHERE;
  return [{ name, grants: [{ drive }], ...login }];
}

const ELSEWHERE = { isListedElsewhere: true } as const;

/** Refuses a second drive without a table of users, because nobody could use it. */
function refuseUnusedDrives([first, second]: readonly DriveConfig[], origin: string): void {
  if (first && second)
    throw new ConfigError(
      `${origin}: every user gets the drive ${first.name} and nobody gets ${second.name}; remove that drive, or add "users" and name a drive for each`,
    );
}

/** Returns the rights of users without a row of their own: the first drive. */
export function firstDriveOf(drives: readonly DriveConfig[]): readonly Grant[] {
  return drives.slice(0, 1).map(({ name: drive }) => ({ drive }));
}

/** Returns the first drive of `grants` that does not exist. */
export function unknownDriveOf(grants: readonly Grant[], drives: readonly DriveConfig[]): string | undefined {
  return grants.find((grant) => !drives.some(({ name }) => name === grant.drive))?.drive;
}

function knownDrive(user: UserConfig, drives: readonly DriveConfig[], origin: string): UserConfig {
  const unknown = unknownDriveOf(user.grants, drives);
  if (unknown === undefined) return user;
  const names = drives.map((drive) => drive.name).join(', ');
  throw new ConfigError(
    `users in ${origin}: the drive "${unknown}" of user ${user.name} is not one of ${names}`,
  );
}
