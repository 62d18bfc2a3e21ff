/**
 * The types of `import { startService } from 'davgate'`, apart from their implementation in `library.ts`: the package
 * contains declarations of this file and of those that it imports, and of no others.
 */
import type { Log } from '../util/log.ts';
import type { FaultSettings } from './faults/switches.ts';

export type { FaultSettings, FaultSwitch } from './faults/switches.ts';

export interface StartOptions {
  /** 0, the default, takes any free port. */
  readonly port?: number;
  /** The default is 127.0.0.1. */
  readonly host?: string;
  /**
   * Gives the functions that carry file bytes a port of their own, as the real service gives them a host. Each port then
   * refuses the functions of the other.
   */
  readonly contentPort?: number;
  /** Keeps the files here. The default is a temporary directory that `close` removes. */
  readonly directory?: string;
  /** Keeps the temporary directory in memory where the system has a file system there: `/dev/shm` on Linux. */
  readonly memory?: boolean;
  /** Faults from the start on; see docs/service/faults.md. */
  readonly faults?: FaultSettings;
  /** Receives the service's log, for example `console`. The default is nowhere. */
  readonly log?: Log;
}

export interface EmbeddedService {
  /** The base and notify URL, without a slash at the end. */
  readonly url: string;
  /** The content URL: the same without `contentPort`. */
  readonly contentUrl: string;
  /** An access token with every scope that never expires. */
  readonly token: string;
  /** For `/oauth2/token`, with the app's key and secret; valid until it is revoked. */
  readonly refreshToken: string;
  readonly appKey: string;
  readonly appSecret: string;
  /** Replaces all faults; those that are not named are off. Throws for an unknown fault or an impossible number. */
  setFaults(faults: FaultSettings): void;
  /**
   * Removes every file, link, session and account that was made since the start, and returns to the faults of the start.
   * Ends running requests. Addresses, token and app stay. Throws when `directory` had files at the start: nothing that
   * existed before is ever removed.
   */
  reset(): Promise<void>;
  /** Ends running requests, closes the ports, and removes a temporary directory. */
  close(): Promise<void>;
}

/**
 * Starts the storage service in this process. Resolves when it answers. Throws when a port is taken, the directory cannot be
 * used, or an option is wrong.
 */
export declare function startService(options?: StartOptions): Promise<EmbeddedService>;
