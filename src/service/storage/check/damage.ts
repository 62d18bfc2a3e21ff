/** A file of which a damage takes something, in one of its revisions. */
export interface DamagedFile {
  readonly namespace: string;
  readonly path: string;
  readonly rev: string;
  /** Whether this revision is what the path holds now, what it held before, or what was deleted from it. */
  readonly state: 'current' | 'earlier' | 'deleted';
}

/** One thing that is not as it should be. */
export interface Damage {
  /** A sentence without a subject, as in `its bytes have changed`. */
  readonly what: string;
  /** At which path of which namespace, if it is a row of the tree. */
  readonly at?: { readonly namespace: string; readonly path: string };
  /** Files that lose bytes by it; none when it costs none. */
  readonly files: readonly DamagedFile[];
  /** How many more files there are than `files` names. */
  readonly moreFiles: number;
}

/** A damage that costs no file any bytes. */
export function rowDamage(what: string, at?: Damage['at']): Damage {
  return { what, files: [], moreFiles: 0, ...(at && { at }) };
}
