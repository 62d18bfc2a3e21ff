/** `npm run bench`: davgate and its peers in one run, interleaved, as ratios. */
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { Agent } from 'node:http';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Ask, downloadRate, exchange, rateOf, uploadRate } from './load.ts';
import {
  type Answers,
  answerKey,
  BARE_NODE,
  type Peer,
  startApache,
  startBareNode,
  startDavgate,
  startRclone,
  startWebdavServer,
} from './peers.ts';
import { DavClient, PROPFIND_BODY } from './remote/dav.ts';

const MIB = 1024 * 1024;
const ROUNDS = 5;
/**
 * Duration of a round, in ms: hundreds of requests of fast peers, and at least one per connection of slow
 * ones.
 */
const ROUND_MS = 2000;
const CONNECTIONS = 4;
const FOLDERS = [10, 1000, 10_000];
const GET_BYTES = 1024 * MIB;
const PUT_BYTES = 256 * MIB;

interface Scenario {
  readonly name: string;
  readonly unit: string;
  readonly measure: (peer: Peer) => Promise<number>;
  readonly only?: (peer: Peer) => boolean;
}

const isBare = (peer: Peer) => peer.name === BARE_NODE;

function propfind(peer: Peer, path: string, depth: string): Ask {
  const headers = { ...peer.headers, depth, 'content-type': 'application/xml' };
  return { url: peer.url + path, method: 'PROPFIND', headers, body: PROPFIND_BODY };
}

function scenarios(piece: Buffer): Scenario[] {
  const listing = (children: number): Scenario => ({
    name: `PROPFIND, depth 1 of ${children.toLocaleString('en')} children, warm`,
    unit: '/s',
    measure: (peer) => rateOf(propfind(peer, `folder-${children}/`, '1'), CONNECTIONS, ROUND_MS),
  });
  return [
    {
      name: 'PROPFIND, depth 0, warm',
      unit: '/s',
      measure: (peer) => rateOf(propfind(peer, 'folder-10/', '0'), CONNECTIONS, ROUND_MS),
    },
    ...FOLDERS.map(listing),
    {
      name: 'GET 4 KiB, warm',
      unit: '/s',
      measure: (peer) =>
        rateOf({ url: `${peer.url}small`, method: 'GET', headers: peer.headers }, CONNECTIONS, ROUND_MS),
    },
    {
      name: 'GET 1 GiB',
      unit: 'MB/s',
      measure: (peer) =>
        downloadRate({ url: `${peer.url}large`, method: 'GET', headers: peer.headers }, GET_BYTES),
    },
    {
      name: 'PUT 256 MiB',
      unit: 'MB/s',
      only: (peer) => !isBare(peer),
      measure: (peer) =>
        uploadRate({ url: `${peer.url}put`, method: 'PUT', headers: peer.headers }, PUT_BYTES, piece),
    },
  ];
}

/** Fills a peer over WebDAV, which every peer supports. */
async function fill(peer: Peer, piece: Buffer): Promise<void> {
  const agent = new Agent({ keepAlive: true });
  const send = async (method: string, path: string, body?: string) => {
    const { status } = await exchange(agent, {
      url: peer.url + path,
      method,
      headers: peer.headers,
      ...(body && { body }),
    });
    if (status >= 300) throw new Error(`${peer.name}: ${method} ${path} was answered with ${status}`);
  };
  for (const children of FOLDERS) {
    await send('MKCOL', `folder-${children}/`);
    let next = 0;
    const work = async () => {
      for (let index = next++; index < children; index = next++)
        await send('PUT', `folder-${children}/file-${index}.txt`, `content of file ${index}`);
    };
    await Promise.all(Array.from({ length: 8 }, work));
  }
  await send('PUT', 'small', 'x'.repeat(4096));
  await uploadRate({ url: `${peer.url}large`, method: 'PUT', headers: peer.headers }, GET_BYTES, piece);
  agent.destroy();
}

/** Returns the small answers of a filled peer. */
async function answersOf(peer: Peer): Promise<Answers> {
  const client = new DavClient(peer);
  const asks = [
    ['PROPFIND', '0', 'folder-10/'],
    ...FOLDERS.map((children) => ['PROPFIND', '1', `folder-${children}/`] as const),
    ['GET', undefined, 'small'],
  ] as const;
  const answers: [string, Answers[string]][] = [];
  for (const [method, depth, path] of asks) {
    const { status, text } = await client.send(method, path, {
      ...(depth && { headers: { depth }, body: PROPFIND_BODY }),
    });
    answers.push([answerKey(method, depth, path), { status, body: text }]);
  }
  client.close();
  return Object.fromEntries(answers);
}

const median = (values: readonly number[]) =>
  [...values].sort((a, b) => a - b)[values.length >> 1] ?? Number.NaN;

/** Measures one scenario. The peers take turns, so that changes of the machine's load affect all of them. */
async function measure(scenario: Scenario, peers: readonly Peer[]): Promise<Map<Peer, number>> {
  const taking = peers.filter((peer) => scenario.only?.(peer) ?? true);
  const figures = new Map<Peer, number[]>(taking.map((peer) => [peer, []]));
  for (let round = 0; round <= ROUNDS; round++) {
    for (const peer of taking) {
      const figure = await scenario.measure(peer);
      // The first round is a warm-up.
      if (round > 0) figures.get(peer)?.push(figure);
    }
  }
  return new Map(taking.map((peer) => [peer, median(figures.get(peer) ?? [])]));
}

function table(
  rows: readonly { scenario: Scenario; figures: Map<Peer, number> }[],
  peers: readonly Peer[],
): string {
  const [own, ...others] = peers;
  const cell = (figure: number | undefined, unit: string, ownFigure: number) => {
    if (figure === undefined) return '–';
    const digits = figure < 10 ? 1 : 0;
    return `${figure.toFixed(digits)} ${unit} (${(ownFigure / figure).toFixed(2)})`;
  };
  const lines = rows.map(({ scenario, figures }) => {
    const ownFigure = (own && figures.get(own)) ?? Number.NaN;
    const first = `${ownFigure.toFixed(ownFigure < 10 ? 1 : 0)} ${scenario.unit}`;
    return [scenario.name, first, ...others.map((peer) => cell(figures.get(peer), scenario.unit, ownFigure))];
  });
  const memory = ['peak memory, all of it', ...peers.map((peer) => `${peer.peakMemory().toFixed(0)} MB`)];
  const head = ['work', ...peers.map((peer) => peer.name)];
  return [head, head.map(() => '---'), ...lines, memory].map((row) => `| ${row.join(' | ')} |`).join('\n');
}

/** Names of the scenarios of `benchLocally`. */
export const LOCAL_WORKS: readonly string[] = scenarios(Buffer.alloc(0)).map(({ name }) => name);

/** Measures davgate and its peers on the local disk in the scenarios of these names. */
export async function benchLocally(names: readonly string[]): Promise<void> {
  const home = mkdtempSync(join(tmpdir(), 'davgate-bench-'));
  chmodSync(home, 0o777);
  execFileSync('chmod', ['-R', 'a+rwX', home]);
  const piece = Buffer.alloc(MIB, 'all work and no play makes a dull bench. ');
  const file = join(home, 'pipe.bin');
  writeFileSync(file, Buffer.alloc(0));
  for (let written = 0; written < GET_BYTES; written += MIB) writeFileSync(file, piece, { flag: 'a' });
  process.umask(0);
  const peers = [
    await startDavgate(home),
    await startApache(home),
    await startRclone(home),
    await startWebdavServer(home),
  ];
  try {
    for (const peer of peers) {
      console.error(`filling ${peer.name}`);
      await fill(peer, piece);
    }
    if (peers[0]) peers.push(await startBareNode(home, file, await answersOf(peers[0])));
    const rows = [];
    for (const scenario of scenarios(piece).filter(({ name }) => names.includes(name))) {
      console.error(scenario.name);
      rows.push({ scenario, figures: await measure(scenario, peers) });
    }
    const machine = `${cpus().length} cores of ${cpus()[0]?.model ?? 'an unknown kind'}, Node ${process.version}`;
    console.log(
      `${machine}; medians of ${ROUNDS} rounds, in brackets davgate's figure divided by the peer's.\n`,
    );
    console.log(table(rows, peers));
  } finally {
    await Promise.allSettled(peers.map((peer) => peer.stop()));
    rmSync(home, { recursive: true, force: true });
  }
}
