import type { AppPasswordStore } from './app-passwords.ts';
import type { AccountBudget } from './budgets.ts';
import type { ChangeStream } from './change-stream.ts';
import type { CommitTurnStore } from './commit-turns.ts';
import type { GatewayLeases } from './gateway-leases.ts';
import type { Intents } from './intents.ts';
import type { LocalFileStore } from './local-files.ts';
import type { Locks } from './locks.ts';
import type { Owners } from './owners.ts';
import type { PlaceholderStore } from './placeholders.ts';
import type { DeadProperties } from './properties.ts';
import type { Replacements } from './replacements.ts';
import type { Times } from './times.ts';
import type { UploadLinkStore } from './upload-links.ts';

/** The stores of one drive. */
export interface DriveState {
  readonly locks: Locks;
  readonly properties: DeadProperties;
  readonly localFiles: LocalFileStore;
  readonly placeholders: PlaceholderStore;
  readonly times: Times;
  readonly replacements: Replacements;
  readonly intents: Intents;
  /** `undefined`: this process is the only gateway. */
  readonly changeStream?: ChangeStream | undefined;
  /** Present with `changeStream`. */
  readonly gatewayLeases?: GatewayLeases | undefined;
  /** Returns the drive's secret, 32 random bytes: the same in all its gateways, and after each restart. Durable. */
  secret(): Promise<Uint8Array>;
}

/** Length of the secret of a drive, in bytes. */
export const SECRET_BYTES = 32;

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
  readonly uploadLinks: UploadLinkStore;
  /** Returns the state of a drive by its name in the configuration. */
  drive(drive: string): DriveState;
  /**
   * Returns why the shared state cannot be reached now, with its address but without its password; `undefined` while it
   * can. State in files always can.
   */
  trouble(): string | undefined;
  /** Returns the budget of an account by its id; absent in a driver that only one process uses. */
  readonly budget?: (account: string) => AccountBudget;
  /** Returns the turns of the commits in a namespace; absent in a driver that only one process uses. */
  readonly commitTurns?: (namespace: string) => CommitTurnStore;
  close(): Promise<void>;
}
