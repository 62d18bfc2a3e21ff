import { type Fault, FileError } from '../errors.ts';

/** What is to be done with a write that the service did not take. */
export type Verdict =
  /** It is not this write's fault: it is tried again later, and so are all others. */
  | 'trouble'
  /** It is tried again later, and others go on. */
  | 'later'
  /** Something else is at its place: both are to be kept. */
  | 'conflict'
  /** Its folder has gone. */
  | 'homeless'
  /** It will not be taken, however often it is tried. */
  | 'refused';

const VERDICTS: Readonly<Record<Fault, Verdict>> = {
  busy: 'trouble',
  offline: 'trouble',
  intercepted: 'trouble',
  // Somebody may grant it.
  'not-entitled': 'trouble',
  unauthorized: 'trouble',
  // Somebody may make room.
  'no-space': 'trouble',
  broken: 'later',
  changed: 'conflict',
  exists: 'conflict',
  'is-a-folder': 'conflict',
  'not-found': 'homeless',
  'parent-missing': 'homeless',
  'not-a-folder': 'homeless',
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

/** Trouble that may be of one write alone: others may land meanwhile, and are not to wait for it. */
const OF_ONE: ReadonlySet<Fault> = new Set(['intercepted', 'no-space', 'not-entitled']);

export function isPerhapsOfOne(error: unknown): boolean {
  return error instanceof FileError && OF_ONE.has(error.fault);
}

/** Trouble that is over for every write as soon as the service answers one call. */
const AWAY: ReadonlySet<Fault> = new Set(['busy', 'offline', 'intercepted', 'unauthorized']);

export function isAway(fault: Fault): boolean {
  return AWAY.has(fault);
}

/** The word for what hinders a write. */
export function faultOf(error: unknown): Fault {
  return error instanceof FileError ? error.fault : 'broken';
}

export function isTrouble(error: unknown): boolean {
  return verdictOn(error, 0) === 'trouble';
}
