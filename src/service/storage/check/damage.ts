/** A revision of a file that loses bytes. */
export interface DamagedFile {
  readonly namespace: string;
  readonly path: string;
  readonly rev: string;
  /** Whether the revision is current, an earlier one of its path, or deleted. */
  readonly state: 'current' | 'earlier' | 'deleted';
}

/** An inconsistency or loss that a check has found. */
export interface Damage {
  /** A sentence without a subject, for example `its bytes have changed`. */
  readonly what: string;
  /** Namespace and path of a damaged row of the tree. */
  readonly at?: { readonly namespace: string; readonly path: string };
  /** Files that lose bytes; empty when none does. */
  readonly files: readonly DamagedFile[];
  /** Number of further files that lose bytes. */
  readonly moreFiles: number;
  /** Whether it has been repaired. */
  readonly isRepaired?: boolean;
}

/** Returns a damage without loss of bytes. */
export function rowDamage(what: string, at?: Damage['at']): Damage {
  return { what, files: [], moreFiles: 0, ...(at && { at }) };
}
