import { decodeName, encodeName } from '../util/url-names.ts';

/** Paths of the drive are decoded and begin with a slash; the root is `/`, and no other ends with one. */

/** The path above the drive in every address, percent-encoded: the page names it. */
export const base = document.documentElement.dataset['base'] ?? '';

/** Returns the path of the folder that a page's address names. Throws `URIError` for an address that is not encoded well. */
export function pathOfAddress(pathname: string): string {
  const above = base.split('/').length - 1;
  const names = pathname
    .split('/')
    .filter((name) => name !== '')
    .slice(above);
  return `/${names.map(decodeName).join('/')}`;
}

/** Returns the address of a file or folder, percent-encoded; a folder's ends with a slash. */
export function addressOf(path: string, kind: 'file' | 'folder'): string {
  const encoded = path.split('/').map(encodeName).join('/');
  return kind === 'folder' && encoded !== '/' ? `${base}${encoded}/` : `${base}${encoded}`;
}

export function join(folder: string, name: string): string {
  return folder === '/' ? `/${name}` : `${folder}/${name}`;
}

export function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf('/')) || '/';
}

export function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

/** Returns the folders from the root to `path` itself. */
export function pathsTo(path: string): readonly string[] {
  const names = path.split('/').filter((name) => name !== '');
  return ['/', ...names.map((_, index) => `/${names.slice(0, index + 1).join('/')}`)];
}
