import { keyOf, type Path, parentOf, ROOT } from '../../util/path.ts';

/** Parameters of `WITHIN`. */
export interface KeyRange {
  readonly key: string;
  readonly from: string;
  readonly before: string;
}

/**
 * SQL for a resource and everything below it, in a table with a `key` column. A range, so that no character of a name
 * is special.
 */
export const WITHIN = '(key = @key OR (key >= @from AND key < @before))';

export function within(path: Path): KeyRange {
  const key = keyOf(path);
  const stem = path === ROOT ? '' : key;
  // "0" is the character after "/", so this range has all paths below the resource.
  return { key, from: `${stem}/`, before: `${stem}0` };
}

/** Returns the key of the folder that contains `path`. */
export function parentKeyOf(path: Path): string {
  return keyOf(parentOf(path));
}
