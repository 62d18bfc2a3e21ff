import { namesOf, type Path, ROOT } from '../util/path.ts';

/** What `encodeURIComponent` escapes and a segment may hold raw (RFC 3986 §3.3). */
const RAW = /%(?:24|26|2B|2C|3A|3B|3D|40)/g;
const RAW_CHARACTERS: Readonly<Record<string, string>> = {
  '%24': '$',
  '%26': '&',
  '%2B': '+',
  '%2C': ',',
  '%3A': ':',
  '%3B': ';',
  '%3D': '=',
  '%40': '@',
};

/** Most names need no escape at all. */
const PLAIN = /^[A-Za-z0-9\-._~!$&'()*+,;=:@]*$/;

/**
 * Where `path` is, as an absolute path for `DAV:href` and `Location`: escapes in upper case and none that
 * is not needed, as gvfs compares them by letter. A collection ends with a slash.
 */
export function hrefOf(path: Path, isCollection: boolean): string {
  if (path === ROOT) return '/';
  const href = `/${namesOf(path).map(encodeSegment).join('/')}`;
  return isCollection ? `${href}/` : href;
}

/** One name as a segment of a path. */
export function encodeSegment(name: string): string {
  if (PLAIN.test(name)) return name;
  return encodeURIComponent(name).replace(RAW, (escaped) => RAW_CHARACTERS[escaped] ?? escaped);
}
