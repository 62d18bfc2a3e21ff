import { type Fault, FileError } from '../errors.ts';

/** What is to be done with a write that the service did not take. */
export type Verdict =
  /** It is not this write's fault: it is tried again later, and so are all others. */
  | 'trouble'
  /** It is tried again later, and others go on. */
  | 'later'
  /** Something else is at its place: both are to be kept. */
  | 'conflict'
  /** It will not be taken, however often it is tried. */
  | 'refused';

const VERDICTS: Readonly<Record<Fault, Verdict>> = {
  busy: 'trouble',
  offline: 'trouble',
  unauthorized: 'trouble',
  // Somebody may make room.
  'no-space': 'trouble',
  broken: 'later',
  changed: 'conflict',
  exists: 'conflict',
  'is-a-folder': 'conflict',
  'not-found': 'refused',
  'parent-missing': 'refused',
  'not-a-folder': 'refused',
  forbidden: 'refused',
  'bad-name': 'refused',
  'into-itself': 'refused',
  'too-large': 'refused',
  'too-many': 'refused',
  // Its bytes are not what was written here: the disk has damaged them.
  incomplete: 'refused',
  checksum: 'refused',
  unsupported: 'refused',
};

/** After so many failures without a reason that would pass by itself, it is given up. */
const BROKEN_MAX = 10;

/** `failures`: how often it has failed before. */
export function verdictOn(error: unknown, failures: number): Verdict {
  if (!(error instanceof FileError)) return 'later';
  if (error.fault === 'broken' && failures + 1 >= BROKEN_MAX) return 'refused';
  return VERDICTS[error.fault];
}

export function isTrouble(error: unknown): boolean {
  return verdictOn(error, 0) === 'trouble';
}
