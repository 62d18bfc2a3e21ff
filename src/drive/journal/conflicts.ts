import type { PendingWrite } from '../../state/journal.ts';
import { join, nameOf, type Path, parentOf } from '../../util/path.ts';

/** The service takes names of so many characters. */
const NAME_LENGTH_MAX = 255;

/**
 * Where a write goes whose place has been taken by somebody else: beside it, in the way the service's own
 * programs name such files. The same write always gets the same names, so that it is recognised after a kill.
 */
export function conflictedCopyPath({ path, acceptedMs }: PendingWrite, number: number): Path {
  const name = nameOf(path);
  const dot = name.lastIndexOf('.') > 0 ? name.lastIndexOf('.') : name.length;
  const when = new Date(acceptedMs).toISOString().slice(0, 19).replace('T', ' ').replaceAll(':', '.');
  const mark = ` (conflicted copy ${when}${number > 1 ? ` ${number}` : ''})`;
  const extension = cut(name.slice(dot), NAME_LENGTH_MAX - mark.length);
  const stem = cut(name.slice(0, dot), NAME_LENGTH_MAX - mark.length - extension.length);
  return join(parentOf(path), `${stem}${mark}${extension}`);
}

/** Never in the middle of a character. */
function cut(text: string, lengthMax: number): string {
  return text.slice(0, lengthMax).replace(/[\ud800-\udbff]$/, '');
}
