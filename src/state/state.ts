import type { Asides } from './asides.ts';
import type { Holds } from './holds.ts';
import type { Locks } from './locks.ts';
import type { DeadProperties } from './properties.ts';
import type { Relocations } from './relocations.ts';
import type { Times } from './times.ts';

/** All that davgate itself has to remember of one drive. */
export interface DriveState {
  readonly locks: Locks;
  readonly properties: DeadProperties;
  readonly asides: Asides;
  readonly holds: Holds;
  readonly times: Times;
  readonly relocations: Relocations;
}

/** A driver: SQLite in the data directory, or Redis between several gateways. */
export interface State {
  /** `drive` is the drive's name in the configuration. */
  drive(drive: string): DriveState;
  close(): Promise<void>;
}
