import { type ApiRefusal, failure, nested, refused } from '../api/failures.ts';
import { boolean, optional, string, struct, timestamp, union } from '../api/schema.ts';
import type { Link, LinkVisibility } from './links.ts';

const PASSWORD_CHARACTERS_MAX = 1024;

/** SharedLinkSettings. */
export const linkSettings = struct({
  require_password: optional(boolean),
  link_password: optional(string({ maxLength: PASSWORD_CHARACTERS_MAX })),
  expires: optional(timestamp),
  audience: optional(union({ public: null, team: null, no_one: null, password: null, members: null })),
  access: optional(union({ viewer: null, editor: null, max: null, default: null })),
  requested_visibility: optional(union({ public: null, team_only: null, password: null })),
  allow_download: optional(boolean),
});

export type LinkSettings = ReturnType<typeof linkSettings>;

/** The requested settings in the service's terms. */
export interface WantedLink {
  readonly visibility: LinkVisibility;
  readonly password?: string;
  readonly expiresMs?: number;
  readonly allowDownload: boolean;
}

/**
 * Returns the requested settings. Throws `settings_error` for settings that are empty, contradictory or unsupported.
 */
export function wantedLink(settings: LinkSettings | undefined, nowMs: number): WantedLink {
  if (!settings) return { visibility: 'public', allowDownload: true };
  if (Object.values(settings).every((value) => value === undefined)) throw invalid();
  refuseTeams(settings);
  const { expires, link_password: password, allow_download: allowDownload = true } = settings;
  if (expires !== undefined && expires <= nowMs) throw invalid();
  const wantsPassword = [settings.audience?.tag, settings.requested_visibility?.tag].includes('password');
  const isProtected = wantsPassword || settings.require_password === true;
  if (isProtected !== Boolean(password)) throw invalid();
  const isClosed = settings.audience?.tag === 'no_one';
  return {
    visibility: isClosed ? 'no_one' : isProtected ? 'password' : 'public',
    ...(password && { password }),
    ...(expires !== undefined && { expiresMs: expires }),
    allowDownload,
  };
}

/**
 * Returns the link with changed settings. The password's hash is that of `settings.link_password`. Throws
 * `settings_error` like `wantedLink`.
 */
export function modifiedLink(
  link: Link,
  settings: LinkSettings,
  {
    removeExpiration,
    nowMs,
    passwordHash,
  }: {
    readonly removeExpiration: boolean;
    readonly nowMs: number;
    readonly passwordHash: Uint8Array | undefined;
  },
): Link {
  const { expires, allow_download: allowDownload = link.allowDownload } = settings;
  if (!removeExpiration && Object.values(settings).every((value) => value === undefined)) throw invalid();
  refuseTeams(settings);
  if (expires !== undefined && (removeExpiration || expires <= nowMs)) throw invalid();
  const { passwordHash: _, expiresMs: __, ...unchanged } = link;
  const hash = modifiedPassword(link, settings, passwordHash);
  const expiresMs = removeExpiration ? undefined : (expires ?? link.expiresMs);
  const isClosed = settings.audience
    ? settings.audience.tag === 'no_one'
    : link.visibility === 'no_one' && settings.requested_visibility === undefined;
  return {
    ...unchanged,
    visibility: isClosed ? 'no_one' : hash ? 'password' : 'public',
    ...(hash && { passwordHash: hash }),
    ...(expiresMs !== undefined && { expiresMs }),
    allowDownload,
  };
}

/**
 * Returns the changed password. The older field `requested_visibility` decides whether there is one; `audience` does
 * not.
 */
function modifiedPassword(
  link: Link,
  { audience, requested_visibility: visibility, require_password: isRequired }: LinkSettings,
  given: Uint8Array | undefined,
): Uint8Array | undefined {
  const isDropped = isRequired === false || visibility?.tag === 'public';
  const isWanted = isRequired === true || visibility?.tag === 'password' || audience?.tag === 'password';
  if (isDropped && (isWanted || given)) throw invalid();
  if (isDropped) return undefined;
  const hash = given ?? link.passwordHash;
  // A password without a visibility replaces the password of a link that has one.
  if (isWanted ? !hash : given && !link.passwordHash) throw invalid();
  return hash;
}

/** Refuses settings for teams and members, and for editing: links are read-only. */
function refuseTeams({ audience, requested_visibility: visibility, access }: LinkSettings): void {
  const isForTeam =
    audience?.tag === 'team' || audience?.tag === 'members' || visibility?.tag === 'team_only';
  if (isForTeam || access?.tag === 'editor')
    throw refused(nested('settings_error', failure('not_authorized')));
}

function invalid(): ApiRefusal {
  return refused(nested('settings_error', failure('invalid_settings')));
}
