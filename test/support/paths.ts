import { type Path, pathOf } from '../../src/util/path.ts';

/** Returns the path of a text. */
export function path(text: string): Path {
  return pathOf(text.split('/').filter((name) => name !== ''));
}
