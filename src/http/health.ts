import type { ServerResponse } from 'node:http';

/** Where monitors ask; no login is needed. */
export const HEALTH_PATH = '/.davgate/healthz';

/** Facts for who looks after the gateway. Nothing of a user, a path or a login. */
export type Health = Readonly<Record<string, string | number | boolean>>;

/**
 * Whether `path`, percent-encoded, is in the folder that davgate keeps for itself on every drive. Slashes in a row count
 * as one, as for all of the drive.
 */
export function isReserved(path: string): boolean {
  const first = path.split('/').find((name) => name !== '') ?? '';
  try {
    return decodeURIComponent(first).toLowerCase() === '.davgate';
  } catch {
    return false;
  }
}

/** 200 while requests are welcome, 503 once the listener drains. */
export function answerHealth(response: ServerResponse, isDraining: boolean, health: Health): void {
  const body = JSON.stringify({ ...health, status: isDraining ? 'draining' : 'ok' });
  response.writeHead(isDraining ? 503 : 200, {
    'Content-Type': 'application/json',
    'Content-Length': Buffer.byteLength(body),
    'Cache-Control': 'no-store',
  });
  response.end(body);
}
