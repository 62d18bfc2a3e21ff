import { keyOf, type Path, parentOf, ROOT } from '../../util/path.ts';

/** The parameters of `WITHIN`. */
export interface KeyRange {
  readonly key: string;
  readonly from: string;
  readonly before: string;
}

/** A resource and all below it, in a table with a `key` column; a range, so that no character of a name is special. */
export const WITHIN = '(key = @key OR (key >= @from AND key < @before))';

export function within(path: Path): KeyRange {
  const key = keyOf(path);
  const stem = path === ROOT ? '' : key;
  // "0" is the character after "/": between the two lies every name below, and nothing else.
  return { key, from: `${stem}/`, before: `${stem}0` };
}

/** Key of the folder that holds `path`. */
export function parentKeyOf(path: Path): string {
  return keyOf(parentOf(path));
}
