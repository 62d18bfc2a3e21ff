import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { davgate, type Rival, rclone } from './gateways.ts';
import { type Result, table } from './table.ts';
import { startUpstream, type Upstream } from './upstream.ts';
import type { Figure, Work } from './work.ts';
import { BROWSING } from './works/browsing.ts';
import { LARGE } from './works/large.ts';
import { RANDOM_READS } from './works/random-reads.ts';
import { SMALL_WRITES } from './works/small-writes.ts';
import { START } from './works/start.ts';
import { TREE } from './works/tree.ts';

const WORKS: readonly Work[] = [START, ...BROWSING, ...SMALL_WRITES, ...LARGE, RANDOM_READS, ...TREE];

/** Names of the works of `benchRemotely`. */
export const REMOTE_WORKS: readonly string[] = WORKS.map(({ name }) => name);

/** Measures davgate and rclone over a slow and limited service in the works of these names. */
export async function benchRemotely(names: readonly string[]): Promise<void> {
  const results: Result[] = [];
  for (const work of WORKS.filter(({ name }) => names.includes(name))) {
    try {
      results.push(await measured(work));
      console.error(table(results.slice(-1)));
    } catch (error) {
      console.error(`${work.name}: ${String(error)}`);
    }
  }
  if (results.length > 0) console.log(table(results));
}

async function measured(work: Work): Promise<Result> {
  const home = mkdtempSync(join(tmpdir(), 'davgate-bench-'));
  const data = join(home, 'service');
  if (work.fill) await withUpstream(data, {}, async (upstream) => work.fill?.(upstream));
  const rivals = [davgate(...(work.davgateWords ?? [])), ...work.modes.map(rclone)];
  const result: Result = {
    work,
    rivals: rivals.map(({ name }) => ({ name, rounds: [], peakMb: 0 })),
    bare: [],
  };
  try {
    await withUpstream(data, work.faults, async (upstream) => {
      for (let round = 0; round < work.rounds; round++) {
        if (work.bare) result.bare.push(await work.bare(upstream));
        for (const [index, rival] of rivals.entries()) {
          console.error(`${work.name}, ${rival.name}, round ${round + 1}`);
          const folder = `${rival.name.replaceAll(/\W+/g, '-')}-${round}`;
          const { figures, peakMb } = await atGateway(work, rival, upstream, join(home, folder), folder);
          const kept = result.rivals[index];
          kept?.rounds.push(figures);
          if (kept) kept.peakMb = Math.max(kept.peakMb, peakMb);
        }
      }
    });
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
  return result;
}

async function withUpstream(
  data: string,
  faults: Work['faults'],
  task: (upstream: Upstream) => Promise<unknown>,
): Promise<void> {
  const upstream = await startUpstream(data, faults);
  try {
    await task(upstream);
  } finally {
    await upstream.stop();
  }
}

/** Runs one rival from its start to its end and removes its state. */
async function atGateway(
  work: Work,
  rival: Rival,
  upstream: Upstream,
  home: string,
  ownFolder: string,
): Promise<{ figures: Figure[]; peakMb: number }> {
  mkdirSync(home, { recursive: true });
  const gateway = await rival.start(home, upstream);
  try {
    const figures = await work.measure({ gateway, upstream, ownFolder });
    return { figures, peakMb: gateway.peakMemory() };
  } finally {
    await gateway.stop();
  }
}
