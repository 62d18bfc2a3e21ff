import { type Path, pathOf } from '../../src/util/path.ts';

/** A drive's path from plain text. */
export function path(text: string): Path {
  return pathOf(text.split('/').filter((name) => name !== ''));
}
