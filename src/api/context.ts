import type { Clock } from '../util/clock.ts';
import type { Log } from '../util/log.ts';
import type { Meter } from '../util/meter.ts';
import type { Caller } from './caller.ts';
import type { DriveRoot } from './drive-root.ts';
import type { Turns } from './turns.ts';

/** The parts that all groups of calls share. A file of its own, because `client.ts` imports the groups. */
export interface Client {
  readonly caller: Caller;
  readonly root: DriveRoot;
  readonly clock: Clock;
  readonly log: Log;
  readonly meter: Meter;
  /** `undefined` if no other gateway shares the account. */
  readonly turns?: Turns | undefined;
}
