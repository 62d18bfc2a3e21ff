import { failure, nested, type Refusal, refused } from './failures.ts';
import type { LinkVisibility } from './links.ts';
import { boolean, optional, string, struct, timestamp, union } from './schema.ts';

const PASSWORD_MAX_CHARACTERS = 1024;

/** SharedLinkSettings. */
export const linkSettings = struct({
  require_password: optional(boolean),
  link_password: optional(string({ maxLength: PASSWORD_MAX_CHARACTERS })),
  expires: optional(timestamp),
  audience: optional(union({ public: null, team: null, no_one: null, password: null, members: null })),
  access: optional(union({ viewer: null, editor: null, max: null, default: null })),
  requested_visibility: optional(union({ public: null, team_only: null, password: null })),
  allow_download: optional(boolean),
});

export type LinkSettings = ReturnType<typeof linkSettings>;

/** What was asked for, in our terms. */
export interface WantedLink {
  readonly visibility: LinkVisibility;
  readonly password?: string;
  readonly expiresMs?: number;
  readonly allowDownload: boolean;
}

/** Throws `settings_error` for settings that say nothing, contradict themselves or cannot be had here. */
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

/** There are no teams or members here, and links are only for looking. */
function refuseTeams({ audience, requested_visibility: visibility, access }: LinkSettings): void {
  const isForTeam =
    audience?.tag === 'team' || audience?.tag === 'members' || visibility?.tag === 'team_only';
  if (isForTeam || access?.tag === 'editor')
    throw refused(nested('settings_error', failure('not_authorized')));
}

function invalid(): Refusal {
  return refused(nested('settings_error', failure('invalid_settings')));
}
