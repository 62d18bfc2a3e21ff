import { foldName, join, nameOf, namesOf, type Path, parentOf } from '../util/path.ts';

/** What waits beside its place during a move or copy onto it is called this and a random end; never shown. */
const WAITING_PREFIX = '.davgate-waiting-';

/** Of one whole name, folded: what desktop systems leave in every folder they show. */
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

/** AppleDouble files (macOS), owner files of Microsoft Office and LibreOffice. */
const LITTER_PATTERN = /^(\._.|~\$.|\.~lock\..*#$)/s;

export function isLitter(name: string): boolean {
  return LITTER_PATTERN.test(name) || LITTER.has(foldName(name));
}

/** Whether `path` is litter or lies in a folder that is. */
export function isWithinLitter(path: Path): boolean {
  return namesOf(path).some(isLitter);
}

/** The AppleDouble file, in which macOS keeps what belongs to the file at `path` and has no place in it. */
export function companionOf(path: Path): Path {
  return join(parentOf(path), `._${nameOf(path)}`);
}

export function waitingName(random: string): string {
  return `${WAITING_PREFIX}${random}`;
}

export function isWaiting(name: string): boolean {
  return name.startsWith(WAITING_PREFIX);
}

/** Whether something that waits beside its place is at `path` or above it. */
export function isWithinWaiting(path: Path): boolean {
  return path.includes(`/${WAITING_PREFIX}`);
}

/**
 * Names that the service is known to refuse at times (service-api.md §9.1): whether it takes one is to be
 * asked before anything is acknowledged.
 */
export function isDoubtful(path: Path): boolean {
  const name = nameOf(path);
  return name.length > 255 || /[\\\p{Cc}]|\s$|^\.dropbox|\p{Extended_Pictographic}/u.test(name);
}
