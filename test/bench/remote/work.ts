import type { Peer } from '../peers.ts';
import type { RcloneMode } from './gateways.ts';
import type { Faults } from './profile.ts';
import type { Traffic, Upstream } from './upstream.ts';

/** Something that clients do; one or more rows of the table. */
export interface Work {
  /** For `--only`. */
  readonly name: string;
  readonly faults: Faults;
  /** rclone's modes that make a difference to it. */
  readonly modes: readonly RcloneMode[];
  readonly rounds: number;
  /** More words for davgate's command line. */
  readonly davgateWords?: readonly string[];
  readonly rows: readonly Row[];
  /** Puts there what all rivals find; without faults. */
  fill?(upstream: Upstream): Promise<void>;
  /** Does it at one gateway, freshly started; one figure for each row, in their order. */
  measure(site: Site): Promise<Figure[]>;
  /** What the service itself gives for each row, past all gateways: the same, and no better, is the most there is. */
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
  /** API calls that it cost, without long polls; a row may say more in `note`. */
  readonly calls: number;
  readonly note?: string;
}

/** Where one measurement is made. */
export interface Site {
  readonly gateway: Peer;
  readonly upstream: Upstream;
  /** A name that no other measurement has. */
  readonly ownFolder: string;
}

/** Whether more of a unit is better. */
export function isRate(unit: Row['unit']): boolean {
  return unit === '/s' || unit === 'MiB/s';
}

/** Runs `work` and tells how many seconds it took and what passed the front meanwhile. */
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

/** Waits at the service and asks for nothing. */
const LONG_POLL = 'files/list_folder/longpoll';

/** What a change feed asks after a long poll; also the later pages of a listing. */
const FEED = 'files/list_folder/continue';

/** Commits among the calls. */
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
