import { type BasePath, pathBelow } from '../util/base-path.ts';

/** Returns the path of a request line, still percent-encoded, without the query and a proxy's scheme and host. */
export function pathOfTarget(target: string): string {
  const path = /^[^?#]*/.exec(target)?.[0] ?? '';
  return path.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/]*(?=\/|$)/i, '') || '/';
}

/** Matches a request line that is a path alone, as nearly all are. */
export const IS_PATH = /^\/[^?#]*$/;

/** Takes the base path off a request line; `undefined` outside of it. `OPTIONS *` is about all that is served. */
export function targetBelow(base: BasePath, target: string): string | undefined {
  if (target === '*') return target;
  const below = pathBelow(base, pathOfTarget(target));
  return below && below + (/[?#].*$/.exec(target)?.[0] ?? '');
}

/** Returns the query of a request line, without the question mark. */
export function queryOfTarget(target: string): string {
  return /^[^?#]*\?([^#]*)/.exec(target)?.[1] ?? '';
}
