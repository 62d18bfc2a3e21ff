/** `npm run bench -- --group several`: one, two and four gateways of one limited account. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { createConnection } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { freePort } from '../support/free-port.ts';
import type { Peer } from './peers.ts';
import { DavClient } from './remote/dav.ts';
import { davgate } from './remote/gateways.ts';
import { type Faults, REALISTIC } from './remote/profile.ts';
import { startUpstream, type Upstream } from './remote/upstream.ts';

/** A burst so small that the rate counts from the beginning. */
const LIMITED: Faults = { ...REALISTIC, 'rate-burst': 20 };

/** Time in which the service's burst is full again, in ms. */
const REST_MS = 3000;

const GATEWAYS = [1, 2, 4];

/** Rounds of a measurement; the median counts. */
const ROUNDS = 3;

/** Clients, which are spread over the gateways, and the number of their files, written one after the other. */
const CLIENTS = 12;
const FILES_EACH = 40;

interface Effort {
  readonly seconds: number;
  readonly calls: number;
  readonly refused: number;
}

interface SeveralWork {
  readonly name: string;
  /** Bytes of a file. */
  readonly sizeBytes: number;
}

const WORKS: readonly SeveralWork[] = [
  { name: 'small files', sizeBytes: 1024 },
  { name: 'files of 64 KiB', sizeBytes: 64 * 1024 },
];

/** Names of the works of `benchSeveral`. */
export const SEVERAL_WORKS: readonly string[] = WORKS.map(({ name }) => name);

/** Measures how much longer several gateways of a limited account take than one, and how many more calls. */
export async function benchSeveral(names: readonly string[]): Promise<void> {
  for (const work of WORKS.filter(({ name }) => names.includes(name))) {
    const home = mkdtempSync(join(tmpdir(), 'davgate-several-'));
    try {
      console.log(
        `\n${work.name}: ${CLIENTS} clients, ${FILES_EACH} files each\n\n${table(await measured(work, home))}`,
      );
    } finally {
      rmSync(home, { recursive: true, force: true });
    }
  }
}

/** Returns the rounds of each number of gateways. */
async function measured(work: SeveralWork, home: string): Promise<ReadonlyMap<number, Effort[]>> {
  const upstream = await startUpstream(join(home, 'service'), LIMITED);
  const redis = await startRedis(home);
  const gateways: Peer[] = [];
  const efforts = new Map<number, Effort[]>(GATEWAYS.map((count) => [count, []]));
  try {
    for (let index = 0; index < Math.max(...GATEWAYS); index++) {
      const own = join(home, `gateway-${index}`);
      mkdirSync(own);
      gateways.push(await davgate('--redis', redis.url, '--redis-volatile').start(own, upstream));
    }
    for (let round = 0; round < ROUNDS; round++)
      for (const count of GATEWAYS) {
        console.error(`${work.name}, ${count} gateways, round ${round + 1}`);
        const folder = `round-${round}-${count}`;
        efforts.get(count)?.push(await effortOf(work, upstream, gateways.slice(0, count), folder));
      }
    return efforts;
  } finally {
    for (const gateway of gateways) await gateway.stop();
    await redis.stop();
    await upstream.stop();
  }
}

async function effortOf(
  { sizeBytes }: SeveralWork,
  { front }: Upstream,
  gateways: readonly Peer[],
  folder: string,
): Promise<Effort> {
  const clients = Array.from({ length: CLIENTS }, (_, index) => {
    const gateway = gateways[index % gateways.length];
    if (!gateway) throw new Error('no gateway');
    return new DavClient(gateway);
  });
  await clients[0]?.send('MKCOL', folder);
  for (const client of clients) await client.list(folder);
  await setTimeout(REST_MS);
  const before = await front.traffic();
  const start = performance.now();
  await Promise.all(
    clients.map(async (client, index) => {
      for (let file = 0; file < FILES_EACH; file++) {
        const body = `${index} ${file} `.padEnd(sizeBytes, '.');
        await client.send('PUT', `${folder}/${index}-${file}`, { body });
      }
    }),
  );
  const seconds = (performance.now() - start) / 1000;
  const after = await front.traffic();
  for (const client of clients) client.close();
  return {
    seconds,
    calls: callsOf(after.calls) - callsOf(before.calls),
    refused: after.refusedCount - before.refusedCount,
  };
}

/** Returns the number of calls without long polls, which no limit counts. */
function callsOf(calls: Readonly<Record<string, number>>): number {
  const counted = Object.entries(calls).filter(([route]) => !route.endsWith('/longpoll'));
  return counted.reduce((sum, [, count]) => sum + count, 0);
}

function table(efforts: ReadonlyMap<number, readonly Effort[]>): string {
  const median = (count: number, of: (effort: Effort) => number) =>
    (efforts.get(count) ?? []).map(of).sort((a, b) => a - b)[ROUNDS >> 1] ?? Number.NaN;
  const rows = GATEWAYS.map((count) => {
    const [seconds, calls] = [median(count, (e) => e.seconds), median(count, (e) => e.calls)];
    return [
      String(count),
      `${seconds.toFixed(2)} s`,
      (seconds / median(1, (e) => e.seconds)).toFixed(2),
      String(calls),
      (calls / median(1, (e) => e.calls)).toFixed(2),
      String(median(count, (e) => e.refused)),
    ];
  });
  const head = ['gateways', 'time', 'of one gateway', 'calls', 'of one gateway', '429'];
  return [head, head.map(() => '---'), ...rows].map((row) => `| ${row.join(' | ')} |`).join('\n');
}

async function startRedis(home: string): Promise<{ readonly url: string; stop(): Promise<void> }> {
  const port = await freePort();
  const child = spawn(
    'redis-server',
    ['--port', String(port), '--bind', '127.0.0.1', '--dir', home, '--save', ''],
    {
      stdio: 'ignore',
    },
  );
  await answering(port, child);
  return {
    url: `redis://127.0.0.1:${port}`,
    async stop() {
      const closed = once(child, 'close');
      child.kill('SIGTERM');
      await closed;
    },
  };
}

/** Resolves when a program listens on a port. */
async function answering(port: number, child: ChildProcess): Promise<void> {
  while (child.exitCode === null) {
    const socket = createConnection(port, '127.0.0.1');
    const connected = await once(socket, 'connect').then(
      () => true,
      () => false,
    );
    socket.destroy();
    if (connected) return;
    await setTimeout(50);
  }
  throw new Error(`redis-server ended with ${child.exitCode}`);
}
