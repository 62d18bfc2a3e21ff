import { foldName } from '../../util/path.ts';

/**
 * Characters that no program should meet in a name it unpacks or prints: controls (C0, DEL, C1: line breaks, terminal
 * escapes), line and paragraph separators, and marks that turn the direction of writing, by which `gpj.exe` reads as
 * `exe.jpg` (Unicode UAX #9 §2).
 */
const UNPRINTABLE = /[\p{Cc}\u2028\u2029\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;

/** `name` with `_` in place of each character that is not to be printed. */
export function printableName(name: string): string {
  return name.replaceAll(UNPRINTABLE, '_');
}

/**
 * The paths of an archive's entries, in the order given: relative, `/` between names, a folder before what is in it. Names
 * are printable; one that would become another's gets a number, so that unpacking overwrites nothing.
 */
export function archivePaths(paths: readonly string[]): string[] {
  const taken = new Set(paths.map(foldName));
  const numbers = new Map<string, number>();
  const folders = new Map([['', '']]);
  return paths.map((path) => {
    const slash = path.lastIndexOf('/') + 1;
    const [folder, name] = [path.slice(0, slash), path.slice(slash)];
    const printable = printableName(name);
    const chosen = printable === name ? name : freeName(folder, printable, taken, numbers);
    taken.add(foldName(folder + chosen));
    const made = `${folders.get(foldName(folder)) ?? folder}${chosen}`;
    folders.set(foldName(`${path}/`), `${made}/`);
    return made;
  });
}

/** `name`, or with a number before its ending. `numbers` has the last one tried, so that ten thousand alike are quick. */
function freeName(
  folder: string,
  name: string,
  taken: ReadonlySet<string>,
  numbers: Map<string, number>,
): string {
  const dot = name.lastIndexOf('.');
  const [stem, ending] = dot > 0 ? [name.slice(0, dot), name.slice(dot)] : [name, ''];
  const key = foldName(folder + name);
  let number = numbers.get(key) ?? 0;
  let free = number === 0 ? name : `${stem} (${number})${ending}`;
  while (taken.has(foldName(folder + free))) free = `${stem} (${++number})${ending}`;
  numbers.set(key, number);
  return free;
}
