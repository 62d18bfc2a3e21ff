/** What a user may do in a folder and below it, in the words of the configuration. */
export const FOLDER_RIGHTS = ['read-write', 'read-only', 'hidden'] as const;

/** The right in one folder. */
export interface FolderGrant {
  /** As the user sees it in the drive. */
  readonly path: string;
  readonly right: (typeof FOLDER_RIGHTS)[number];
}

/** A drive that a user may use. */
export interface Grant {
  /** The name of the drive. */
  readonly drive: string;
  /** Whether the user may not change anything there. */
  readonly isReadOnly?: boolean;
  /** The folder at the address in which the user sees the drive; absent if it is the address itself. */
  readonly folder?: string;
  /** The folder of the drive that the user sees; the whole drive by default. */
  readonly root?: string;
  /** Rights in single folders; the longest path takes precedence. */
  readonly folders?: readonly FolderGrant[];
  /** Maximum size of everything that the user sees of the drive, in bytes. */
  readonly quotaBytes?: number;
}

/** Maximum rates of a user or of all users together, in bytes a second; absent without a limit. */
export interface Bandwidth {
  readonly downloadBytes?: number;
  readonly uploadBytes?: number;
}
