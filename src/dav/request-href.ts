import { type Path, PathError, pathOf } from '../util/path.ts';
import { encodeSegment, hrefOf } from './href.ts';

/**
 * The request's own name for `path`, as a `DAV:href`: in the case and the Unicode form that the client used.
 * davfs2 and Zotero drop rows whose href does not start with what they asked for, and a Mac asks in NFD.
 */
export function requestHref(target: string, path: Path, isCollection: boolean): string {
  const names = namesIn(target);
  if (!names || !isSame(names, path)) return hrefOf(path, isCollection);
  const href = `/${names.map(encodeSegment).join('/')}`;
  return isCollection && names.length > 0 ? `${href}/` : href;
}

function namesIn(target: string): string[] | undefined {
  const [path = ''] = target.replace(/^https?:\/\/[^/]*/i, '').split('?', 1);
  try {
    return path.split('/').filter(Boolean).map(decodeURIComponent);
  } catch {
    return undefined;
  }
}

/** The target may have been rewritten on its way to us. */
function isSame(names: readonly string[], path: Path): boolean {
  try {
    return pathOf(names) === path;
  } catch (error) {
    if (error instanceof PathError) return false;
    throw error;
  }
}
