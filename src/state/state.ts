import type { Intents } from './intents.ts';
import type { LocalFileStore } from './local-files.ts';
import type { Locks } from './locks.ts';
import type { Owners } from './owners.ts';
import type { PlaceholderStore } from './placeholders.ts';
import type { DeadProperties } from './properties.ts';
import type { Replacements } from './replacements.ts';
import type { Times } from './times.ts';

/** All that davgate itself has to remember of one drive. */
export interface DriveState {
  readonly locks: Locks;
  readonly properties: DeadProperties;
  readonly localFiles: LocalFileStore;
  readonly placeholders: PlaceholderStore;
  readonly times: Times;
  readonly replacements: Replacements;
  readonly intents: Intents;
}

/** A driver: SQLite in the data directory, or Redis between several gateways. */
export interface State {
  /**
   * Whose the drives are; to be set before `drive`. What is kept for another account is not lost: it is put aside until
   * that one is set again. Throws `OtherOwner` where other gateways may be at work with it.
   */
  readonly owners: Owners;
  /** `drive` is the drive's name in the configuration. */
  drive(drive: string): DriveState;
  close(): Promise<void>;
}
