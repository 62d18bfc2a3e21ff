/** A drive that a user may use. */
export interface Grant {
  /** The name of the drive. */
  readonly drive: string;
  /** Whether the user may not change anything there. */
  readonly isReadOnly?: boolean;
}
