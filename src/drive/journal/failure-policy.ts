import { type Fault, FileError } from '../errors.ts';

/** The treatment of a write that the service did not accept. */
export type FailurePolicy =
  /** The failure concerns all writes: all pause, and are tried again. */
  | 'pause-all'
  /** It is tried again later; others continue. */
  | 'retry'
  /** Something else is at its path: both are kept. */
  | 'conflict'
  /** Its folder no longer exists: it is found at its new path or created again. */
  | 'folder-gone'
  /** The service will never take it. */
  | 'refused';

const POLICIES: Readonly<Record<Fault, FailurePolicy>> = {
  busy: 'pause-all',
  offline: 'pause-all',
  intercepted: 'pause-all',
  // The permission may be granted later.
  'not-entitled': 'pause-all',
  unauthorized: 'pause-all',
  // Room may be made later.
  'no-space': 'pause-all',
  broken: 'retry',
  changed: 'conflict',
  exists: 'conflict',
  'is-a-folder': 'conflict',
  'not-found': 'folder-gone',
  'parent-missing': 'folder-gone',
  'not-a-folder': 'folder-gone',
  forbidden: 'refused',
  'bad-name': 'refused',
  'into-itself': 'refused',
  'too-large': 'refused',
  'too-many': 'refused',
  // Quotas are checked before a write is accepted.
  'over-quota': 'refused',
  // The local disk has damaged the journal's copy.
  incomplete: 'refused',
  checksum: 'refused',
  unsupported: 'refused',
};

/** Number of failures `broken` after which a write is given up. */
const BROKEN_MAX = 10;

/** Returns what happens to a write that failed with `error`, after `brokenCount` earlier failures `broken`. */
export function failurePolicy(error: unknown, brokenCount: number): FailurePolicy {
  if (!(error instanceof FileError)) return 'retry';
  if (isBroken(error) && brokenCount + 1 >= BROKEN_MAX) return 'refused';
  return POLICIES[error.fault];
}

/** Whether the service has answered a write with a failure that makes no sense. */
export function isBroken(error: unknown): boolean {
  return error instanceof FileError && error.fault === 'broken';
}

/** Failures that may concern one write alone: others do not wait for it. */
const MAYBE_ONE_WRITE: ReadonlySet<Fault> = new Set(['intercepted', 'no-space', 'not-entitled']);

export function mayConcernOneWrite(error: unknown): boolean {
  return error instanceof FileError && MAYBE_ONE_WRITE.has(error.fault);
}

/** Failures that are over for all writes as soon as the service answers one call. */
const OUTAGE: ReadonlySet<Fault> = new Set(['busy', 'offline', 'intercepted', 'unauthorized']);

export function isOutageFault(fault: Fault): boolean {
  return OUTAGE.has(fault);
}

/** Returns the fault behind a failed write. */
export function faultOf(error: unknown): Fault {
  return error instanceof FileError ? error.fault : 'broken';
}

export function concernsAllWrites(error: unknown): boolean {
  return failurePolicy(error, 0) === 'pause-all';
}
