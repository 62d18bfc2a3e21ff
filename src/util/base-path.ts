/**
 * The path below which clients see a drive, percent-encoded: `/team/drive`. It begins with a slash and does not end with
 * one; `''` stands for the root of the host.
 */
export type BasePath = string;

/** Characters of a segment (RFC 3986 §3.3), without the comma, which separates the values of a header. */
const SEGMENTS = /^(\/([\w.~!$&'()*+;=:@-]|%[\da-f]{2})+)*\/?$/i;

/** Parses a base path, with or without a slash at its end. Returns `undefined` for any other text. */
export function parseBasePath(text: string): BasePath | undefined {
  if (!SEGMENTS.test(text)) return undefined;
  const segments = text.split('/').filter(Boolean);
  const isUsable = segments.every((segment) => !['.', '..', undefined].includes(decoded(segment)));
  return isUsable ? segments.map((segment) => `/${segment}`).join('') : undefined;
}

/**
 * Takes the base path off the path of a URL, percent-encoded: `/team/drive/a` below `/team/drive` is `/a`, and the base
 * path itself is `/`. Returns `undefined` for a path outside. Repeated slashes count as one, and escapes do not matter.
 */
export function pathBelow(base: BasePath, path: string): string | undefined {
  if (base === '' || path === base) return base === '' ? path : '/';
  if (path.startsWith(base) && path[base.length] === '/') return path.slice(base.length);
  let rest = path;
  for (const segment of base.split('/').slice(1)) {
    const [whole = '', found] = /^\/+([^/]+)/.exec(rest) ?? [];
    if (found === undefined || decoded(found) !== decoded(segment)) return undefined;
    rest = rest.slice(whole.length);
  }
  return rest || '/';
}

/** Returns the part of `base` that `path` spells, if it is a folder above it: `/team` for `/team/`, and `''` for `/`. */
export function partAbove(base: BasePath, path: string): BasePath | undefined {
  const count = path.split('/').filter(Boolean).length;
  const part = base
    .split('/')
    .slice(0, count + 1)
    .join('/');
  return part !== base && pathBelow(part, path) !== undefined ? part : undefined;
}

/** Returns a name of a URL in NFC; `undefined` if its escapes cannot be decoded, or hide a slash. */
function decoded(segment: string): string | undefined {
  try {
    const name = decodeURIComponent(segment).normalize('NFC');
    return name.includes('/') ? undefined : name;
  } catch {
    return undefined;
  }
}
