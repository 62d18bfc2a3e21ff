import type { Credentials } from './drive-config.ts';

/** What to do about a login that the service refuses with `summary`, its error's name. */
export function adviceForRefusedLogin(credentials: Credentials, summary: string | undefined): string {
  if ('token' in credentials) return 'give a new access token (DAVGATE_TOKEN), or run davgate login';
  if (summary === 'invalid_client') return 'check DAVGATE_APP_KEY and DAVGATE_APP_SECRET';
  return 'log in again (davgate login --remove, then davgate login), or give a new DAVGATE_REFRESH_TOKEN';
}
