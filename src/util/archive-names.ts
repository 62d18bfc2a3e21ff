import { numberedName } from './file-name.ts';
import { foldName } from './path.ts';

/**
 * Characters that must not reach a program that unpacks or prints names: controls (C0, DEL, C1: line breaks, terminal
 * escapes), line and paragraph separators, and bidirectional marks, with which `gpj.exe` reads as `exe.jpg` (Unicode
 * UAX #9 §2).
 */
const UNPRINTABLE = /[\p{Cc}\u2028\u2029\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;

/** Returns `name` with `_` instead of each unprintable character. */
export function printableName(name: string): string {
  return name.replaceAll(UNPRINTABLE, '_');
}

/**
 * Returns the paths of an archive's entries, in the given order: relative, with `/` between names, a folder before its
 * content. Names are printable; a name that is already taken gets a number, so that unpacking overwrites nothing.
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

/**
 * Returns `name`, or with a number before its extension. `numbers` has the last one tried for each name, so that ten
 * thousand equal names are quick.
 */
function freeName(
  folder: string,
  name: string,
  taken: ReadonlySet<string>,
  numbers: Map<string, number>,
): string {
  const key = foldName(folder + name);
  let number = numbers.get(key) ?? 0;
  let free = number === 0 ? name : numberedName(name, number);
  while (taken.has(foldName(folder + free))) free = numberedName(name, ++number);
  numbers.set(key, number);
  return free;
}
