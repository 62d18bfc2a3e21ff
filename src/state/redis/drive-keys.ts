import type { Connection } from './connection.ts';

/** What a drive's stores work on. */
export interface DriveStore {
  readonly connection: Connection;
  /** The Redis key that is called `name` in this drive. */
  readonly key: (name: string) => string;
}

/**
 * Keys of one drive begin alike: `davgate:{drive}:`. The braces are Redis' own sign for keys that belong on
 * one node, as those do that one script changes.
 */
export function driveStore(connection: Connection, drive: string): DriveStore {
  return { connection, key: (name) => `davgate:{${drive}}:${name}` };
}
