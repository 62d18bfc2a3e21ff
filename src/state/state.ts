import type { AppPasswordStore } from './app-passwords.ts';
import type { Intents } from './intents.ts';
import type { LocalFileStore } from './local-files.ts';
import type { Locks } from './locks.ts';
import type { Owners } from './owners.ts';
import type { PlaceholderStore } from './placeholders.ts';
import type { DeadProperties } from './properties.ts';
import type { Replacements } from './replacements.ts';
import type { Times } from './times.ts';

/** The stores of one drive. */
export interface DriveState {
  readonly locks: Locks;
  readonly properties: DeadProperties;
  readonly localFiles: LocalFileStore;
  readonly placeholders: PlaceholderStore;
  readonly times: Times;
  readonly replacements: Replacements;
  readonly intents: Intents;
}

/** What requests need of a drive's stores. */
export interface RequestState {
  readonly locks: Omit<Locks, 'all'>;
  readonly properties: Pick<DeadProperties, 'of' | 'change' | 'version'>;
}

/** A driver: SQLite in the data directory, or a Redis that several gateways share. */
export interface State {
  /**
   * The drives' owners; set before `drive` is called. State of another account or namespace is kept until that one is
   * set again.
   * `set` throws `OtherOwner` when other gateways may be using the state.
   */
  readonly owners: Owners;
  readonly appPasswords: AppPasswordStore;
  /** Returns the state of a drive by its name in the configuration. */
  drive(drive: string): DriveState;
  close(): Promise<void>;
}
