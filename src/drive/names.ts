import { foldName, join, nameOf, namesOf, type Path, parentOf } from '../util/path.ts';

/** Prefix of the hidden name of an entry that is being replaced by a move or copy; never shown. */
const WAITING_PREFIX = '.davgate-waiting-';

/** Names that desktop systems leave in every folder they show, in folded case. */
const LITTER = new Set(
  [
    '.DS_Store',
    '.localized',
    '.Spotlight-V100',
    '.Trashes',
    '.fseventsd',
    '.TemporaryItems',
    '.DocumentRevisions-V100',
    '.VolumeIcon.icns',
    '.apdisk',
    '.metadata_never_index',
    '.metadata_never_index_unless_rootfs',
    '.metadata_direct_scope_only',
    '.ql_disablethumbnails',
    '.ql_disablecache',
    '.com.apple.timemachine.donotpresent',
    'Icon\r',
    'Thumbs.db',
    'ehthumbs.db',
    'desktop.ini',
  ].map(foldName),
);

/** AppleDouble files (macOS), and owner files of Microsoft Office and LibreOffice. */
const LITTER_PATTERN = /^(\._.|~\$.|\.~lock\..*#$)/s;

/**
 * Matches every path in which a name is litter or hidden, and few others: nearly all paths need no closer look. Letters
 * match as `foldName` folds them.
 */
export const MAY_BE_SPECIAL = /\/(\.|~\$|icon\r|thumbs\.db|ehthumbs\.db|desktop\.ini)/iu;

export function isLitter(name: string): boolean {
  return LITTER_PATTERN.test(name) || LITTER.has(foldName(name));
}

/** Returns whether `path` or a folder above it has such a name. */
export function isWithinLitter(path: Path): boolean {
  return namesOf(path).some(isLitter);
}

/** Returns the path of the AppleDouble file, in which macOS keeps metadata of the file at `path`. */
export function companionOf(path: Path): Path {
  return join(parentOf(path), `._${nameOf(path)}`);
}

/**
 * How much of an entry's name its hidden name contains, in code points from the end: also as the service writes it, the whole
 * is never too long.
 */
const NAME_IN_WAITING_MAX = 80;

/** Returns the hidden name of an entry called `name`, which the replacement `id` is about to replace. */
export function waitingName(id: string, name: string): string {
  return `${WAITING_PREFIX}${id}~${[...name].slice(-NAME_IN_WAITING_MAX).join('')}`;
}

/** Returns the name, or its end, of the entry that has a hidden name; `undefined` if it says none. */
export function nameBefore(waiting: string): string | undefined {
  return /^[^~]*~(?!\.{1,2}$)(.+)$/s.exec(waiting)?.[1];
}

export function isWaiting(name: string): boolean {
  return name.startsWith(WAITING_PREFIX);
}

/** Returns whether `path` or a folder above it has the hidden name of a replaced entry. */
export function isWithinWaiting(path: Path): boolean {
  return path.includes(`/${WAITING_PREFIX}`);
}

/**
 * Returns whether the service may refuse the name of `path` (service-api.md §9.1), also because its form there is longer
 * (`api/wire-names.ts`), or cannot be cut (`api/long-names.ts`). Then a write waits for the service before it is acknowledged.
 */
export function isDoubtful(path: Path): boolean {
  const name = nameOf(path);
  return (
    name.length > 255 ||
    /[\\\p{Cc}\u201b\uff3c\u2420\u2421]|\s$|^\.dropbox|\p{Extended_Pictographic}/u.test(name)
  );
}
