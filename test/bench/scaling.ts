/** `npm run bench -- --group scaling`: what an item costs davgate as folders, trees, files and clients grow. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Ask, downloadRate, rateOf, uploadRate } from './load.ts';
import { type Peer, startDavgate } from './peers.ts';
import { DavClient, PROPFIND_BODY } from './remote/dav.ts';

const KIB = 1024;
const MIB = 1024 * KIB;
const GIB = 1024 * MIB;

/** Rounds of a measurement that can be repeated; the median counts. */
const ROUNDS = 3;

/** Duration of a round, in ms. */
const ROUND_MS = 2000;

/** Connections of the client that fills and walks a drive. */
const CONNECTIONS = 4;

/** Files of each folder of a tree. */
const FOLDER_FILES = 100;

/** Size of the smallest tree, in files. The larger ones are copies of it: the service copies 10,000 files at once at most. */
const TREE_FILES_MIN = 1000;

/** The figures of one size, by column. */
type Row = Readonly<Record<string, string>>;

/** davgate with its embedded service on one drive. */
interface Subject {
  readonly davgate: Peer;
  readonly client: DavClient;
  /** Starts davgate again, with cold caches in memory. */
  restart(): Promise<void>;
}

interface Scale {
  readonly name: string;
  readonly sizes: readonly number[];
  /** Called with the sizes in their order, on one drive. */
  readonly measure: (subject: Subject, size: number) => Promise<Row>;
}

const SCALES: readonly Scale[] = [
  { name: 'folder of N files', sizes: [10, 100, 1000, 10_000, 100_000], measure: folderOf },
  { name: 'tree of N files', sizes: [TREE_FILES_MIN, 10_000, 100_000, 1_000_000], measure: treeOf },
  { name: 'file of N bytes', sizes: [KIB, 32 * KIB, MIB, 32 * MIB, GIB, 8 * GIB], measure: fileOf },
  { name: 'requests over N connections', sizes: [1, 4, 16, 64, 256], measure: requestsOver },
];

/** Names of the scales of `benchScaling`. */
export const SCALING_WORKS: readonly string[] = SCALES.map(({ name }) => name);

/** Measures davgate in the scales of these names, with all of the machine's cores and with one. */
export async function benchScaling(names: readonly string[]): Promise<void> {
  for (const scale of SCALES.filter(({ name }) => names.includes(name)))
    for (const cores of ['all cores', 'one core'] as const) {
      const rows = await measured(scale, cores);
      console.log(`\n${scale.name}, davgate on ${cores}\n\n${table(rows)}`);
    }
}

async function measured(scale: Scale, cores: 'all cores' | 'one core'): Promise<Row[]> {
  const home = mkdtempSync(join(tmpdir(), 'davgate-scaling-'));
  const how = {
    prefix: cores === 'one core' ? ['taskset', '-c', '0'] : [],
    // As behind a proxy: a single client may not have 256 connections.
    options: ['--trusted-proxy', '127.0.0.0/8'],
  };
  const startOn = async () => {
    const davgate = await startDavgate(home, how);
    return { davgate, client: new DavClient(davgate, CONNECTIONS) };
  };
  let running = await startOn();
  const stop = async () => {
    running.client.close();
    await running.davgate.stop();
  };
  const subject: Subject = {
    get davgate() {
      return running.davgate;
    },
    get client() {
      return running.client;
    },
    async restart() {
      await stop();
      running = await startOn();
    },
  };
  const rows: Row[] = [];
  try {
    for (const size of scale.sizes) {
      console.error(`${scale.name}, ${cores}: ${size}`);
      const row = await scale.measure(subject, size);
      rows.push({
        N: size.toLocaleString('en'),
        ...row,
        'peak memory': `${running.davgate.peakMemory().toFixed(0)} MB`,
      });
    }
    return rows;
  } finally {
    await stop();
    rmSync(home, { recursive: true, force: true });
  }
}

async function folderOf(subject: Subject, files: number): Promise<Row> {
  const folder = `folder-${files}`;
  await makeFolder(subject.client, folder, files);
  await subject.restart();
  const { davgate, client } = subject;
  const first = await secondsOf(() => client.list(folder));
  const ask = {
    url: `${davgate.url}${folder}/`,
    method: 'PROPFIND',
    headers: { ...davgate.headers, depth: '1' },
    body: PROPFIND_BODY,
  };
  const perSecond = await medianOf(() => rateOf(ask, 1, ROUND_MS));
  return {
    'first PROPFIND, a file': microseconds(first / files),
    'next PROPFIND, a file': microseconds(1 / perSecond / files),
  };
}

async function treeOf(subject: Subject, files: number): Promise<Row> {
  const tree = `tree-${files}`;
  await subject.client.send('MKCOL', tree);
  const copied = await secondsOf(() => makeTree(subject, tree, files));
  await subject.restart();
  const first = await secondsOf(() => walk(subject.client, tree));
  const again = await secondsOf(() => walk(subject.client, tree));
  return {
    'COPY, a file': files === TREE_FILES_MIN ? '–' : microseconds(copied / files),
    'first walk, a file': microseconds(first / files),
    'next walk, a file': microseconds(again / files),
  };
}

/** Makes a tree whose folders have ten folders each, down to those of the smallest tree, which have files. */
async function makeTree(subject: Subject, tree: string, files: number): Promise<void> {
  const { davgate, client } = subject;
  for (let part = 0; part < 10; part++) {
    const path = `${tree}/${part}`;
    if (files === TREE_FILES_MIN) await makeFolder(client, path, FOLDER_FILES);
    else if (files === 10 * TREE_FILES_MIN)
      await client.send('COPY', `tree-${TREE_FILES_MIN}`, {
        headers: { destination: `${davgate.url}${path}` },
      });
    else {
      await client.send('MKCOL', path);
      await makeTree(subject, path, files / 10);
    }
  }
}

/** Lists `folder` and each folder below it, one request after the other. */
async function walk(client: DavClient, folder: string): Promise<void> {
  for (const name of await client.list(folder))
    if (name.endsWith('/')) await walk(client, `${folder}/${name.slice(0, -1)}`);
}

async function fileOf(subject: Subject, sizeBytes: number): Promise<Row> {
  const piece = Buffer.alloc(Math.min(sizeBytes, MIB), 'all work and no play makes a dull bench. ');
  const path = `file-${sizeBytes}`;
  const put = await secondsOf(() =>
    uploadRate({ ...get(subject.davgate, path), method: 'PUT' }, sizeBytes, piece),
  );
  await subject.restart();
  const ask = get(subject.davgate, path);
  // The entry is cached then, as it is for a client that has listed the folder.
  await subject.client.list('');
  const first = await secondsOf(() => downloadRate(ask, sizeBytes));
  const again = await medianOf(() => secondsOf(() => downloadRate(ask, sizeBytes)));
  const mib = sizeBytes / MIB;
  return Object.fromEntries(
    Object.entries({ PUT: put, 'first GET': first, 'next GET': again }).map(([what, seconds]) => [
      what,
      sizeBytes < MIB ? `${(1000 * seconds).toFixed(1)} ms` : `${(mib / seconds).toFixed(0)} MiB/s`,
    ]),
  );
}

async function requestsOver({ davgate, client }: Subject, connections: number): Promise<Row> {
  await client.send('PUT', 'small', { body: 'x'.repeat(4 * KIB) });
  const propfind = {
    url: `${davgate.url}small`,
    method: 'PROPFIND',
    headers: { ...davgate.headers, depth: '0' },
    body: PROPFIND_BODY,
  };
  const rate = async (ask: Ask) => medianOf(() => rateOf(ask, connections, ROUND_MS));
  return {
    'GET 4 KiB': `${(await rate(get(davgate, 'small'))).toFixed(0)} /s`,
    'PROPFIND, depth 0': `${(await rate(propfind)).toFixed(0)} /s`,
  };
}

function get({ url, headers }: Peer, path: string): Ask {
  return { url: url + path, method: 'GET', headers };
}

/** Creates a folder of `files` small files. */
async function makeFolder(client: DavClient, folder: string, files: number): Promise<void> {
  await client.send('MKCOL', folder);
  const names = Array.from({ length: files }, (_, index) => `file-${index}.txt`);
  await client.each(names, (name) => client.send('PUT', `${folder}/${name}`, { body: name }));
}

async function secondsOf(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await work();
  return (performance.now() - start) / 1000;
}

async function medianOf(measure: () => Promise<number>): Promise<number> {
  const figures: number[] = [];
  for (let round = 0; round < ROUNDS; round++) figures.push(await measure());
  return figures.sort((a, b) => a - b)[ROUNDS >> 1] ?? Number.NaN;
}

function microseconds(seconds: number): string {
  return `${(1e6 * seconds).toFixed(1)} µs`;
}

function table(rows: readonly Row[]): string {
  const head = Object.keys(rows[0] ?? {});
  const lines = rows.map((row) => head.map((column) => row[column] ?? ''));
  return [head, head.map(() => '---'), ...lines].map((row) => `| ${row.join(' | ')} |`).join('\n');
}
