import type { Peer } from '../peers.ts';
import type { RcloneMode } from './gateways.ts';
import type { Faults } from './profile.ts';
import type { Traffic, Upstream } from './upstream.ts';

/** A task of clients, measured in one or more rows of the table. */
export interface Work {
  /** Name for `--only`. */
  readonly name: string;
  readonly faults: Faults;
  /** rclone's modes in which the task behaves differently. */
  readonly modes: readonly RcloneMode[];
  readonly rounds: number;
  /** More arguments of davgate. */
  readonly davgateWords?: readonly string[];
  readonly rows: readonly Row[];
  /** Fills the service before the measurements, without faults. */
  fill?(upstream: Upstream): Promise<void>;
  /** Runs the task on one newly started gateway. Returns one figure for each row. */
  measure(site: Site): Promise<Figure[]>;
  /** Runs the task on the service itself, without a gateway, as the upper bound of each row. */
  bare?(upstream: Upstream): Promise<(number | undefined)[]>;
}

export interface Row {
  readonly title: string;
  readonly unit: 's' | '/s' | 'MiB/s' | 'ms' | 'calls';
  readonly wanted: string;
  met(own: Figure, rival: Figure, bare: number | undefined): boolean;
}

export interface Figure {
  readonly value: number;
  /** Number of API calls, without long polls. */
  readonly calls: number;
  readonly note?: string;
}

/** The place of one measurement. */
export interface Site {
  readonly gateway: Peer;
  readonly upstream: Upstream;
  /** A folder name that no other measurement uses. */
  readonly ownFolder: string;
}

/** Returns whether higher values of a unit are better. */
export function isRate(unit: Row['unit']): boolean {
  return unit === '/s' || unit === 'MiB/s';
}

/** Runs `work`. Returns its duration in seconds and the traffic of the front meanwhile. */
export async function counted<T>(
  { upstream }: Site,
  work: () => Promise<T>,
): Promise<{ result: T; seconds: number; calls: number; feedCalls: number; traffic: Traffic }> {
  const before = await upstream.front.traffic();
  const start = performance.now();
  const result = await work();
  const seconds = (performance.now() - start) / 1000;
  const traffic = difference(await upstream.front.traffic(), before);
  console.error(`  ${seconds.toFixed(2)} s: ${JSON.stringify(traffic)}`);
  const calls = Object.values(traffic.calls).reduce((sum, count) => sum + count, 0);
  const [polls = 0, feedCalls = 0] = [LONG_POLL, FEED].map((name) => traffic.calls[name]);
  return { result, seconds, calls: calls - polls, feedCalls, traffic };
}

/** The long poll, which is not counted. */
const LONG_POLL = 'files/list_folder/longpoll';

/** The change feed's call after a long poll, and the later pages of a listing. */
const FEED = 'files/list_folder/continue';

/** Returns the number of commits among the calls. */
export function commitsIn({ calls }: Traffic): number {
  return COMMITS.reduce((sum, name) => sum + (calls[name] ?? 0), 0);
}

const COMMITS = ['upload', 'upload_session/finish', 'upload_session/finish_batch_v2', 'create_folder_v2'].map(
  (name) => `files/${name}`,
);

function difference(after: Traffic, before: Traffic): Traffic {
  const calls = Object.entries(after.calls).map(
    ([name, count]) => [name, count - (before.calls[name] ?? 0)] as const,
  );
  return {
    calls: Object.fromEntries(calls.filter(([, count]) => count > 0)),
    refusedCount: after.refusedCount - before.refusedCount,
    receivedBytes: after.receivedBytes - before.receivedBytes,
  };
}
