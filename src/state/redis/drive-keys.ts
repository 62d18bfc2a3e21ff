import type { Connection } from './connection.ts';

/** The connection and keys of a drive's stores. */
export interface DriveStore {
  readonly connection: Connection;
  /** Returns the Redis key of `name` in this drive. */
  readonly key: (name: string) => string;
}

/**
 * Returns the store of a drive. Its keys begin with `davgate:{drive}:`; the braces make a Redis cluster keep them on
 * one node, as a script requires for all its keys.
 */
export function driveStore(connection: Connection, drive: string): DriveStore {
  return { connection, key: (name) => `davgate:{${drive}}:${name}` };
}
