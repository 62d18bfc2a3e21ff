import type { IncomingMessage, ServerResponse } from 'node:http';
import { createRequire } from 'node:module';
import type { Socket } from 'node:net';
import type prometheus from 'prom-client';
import { isLoopback } from '../config/address.ts';
import type { Meter } from '../util/meter.ts';
import { Traffic } from './traffic.ts';

const load = createRequire(import.meta.url);
// Each class by itself: the whole library brings OpenTelemetry's API along, which takes longer to load than all of ours.
const Counter: typeof prometheus.Counter = load('prom-client/lib/counter.js');
const Gauge: typeof prometheus.Gauge = load('prom-client/lib/gauge.js');
const Histogram: typeof prometheus.Histogram = load('prom-client/lib/histogram.js');
const Registry: typeof prometheus.Registry = load('prom-client/lib/registry.js');

/** Where Prometheus asks. Beside the drive's files, not among them: a file `/metrics` stays a file. */
export const METRICS_PATH = '/.davgate/metrics';

/** What a drive is like at the moment of a scrape. */
export interface DriveGauges {
  /** The configuration's name for it. */
  readonly name: string;
  readonly lanes: Readonly<Record<string, { readonly waiting: number; readonly running: number }>>;
  readonly isPaused: boolean;
  readonly sentBytes: number;
  readonly receivedBytes: number;
  readonly metadataBytes: number;
  readonly placeholders: number;
  readonly isFeedAlive: boolean;
  readonly journal: {
    readonly files: number;
    readonly bytes: number;
    readonly lostFiles: number;
    /** What hinders its writes. */
    readonly trouble?: string;
  };
}

export interface MetricsOptions {
  /** The program that asks, as one of a few names. */
  readonly familyOf: (request: IncomingMessage) => string;
  /** Asked at each scrape. */
  readonly drives: () => readonly DriveGauges[];
  /** What the block cache takes on the disk; asked at each scrape. */
  readonly blockCacheBytes: () => number;
}

export interface Metrics {
  /** For the rooms below. */
  readonly meter: Meter;
  /** An exchange is over; `status` is `undefined` when the connection went before the answer. */
  answered(request: IncomingMessage, status: number | undefined, ms: number): void;
  /** A client has connected: its bytes count. */
  connected(socket: Socket): void;
  /** All of it as the text that Prometheus reads. */
  text(): Promise<string>;
}

/** Any other method is `other`: a label that a stranger may choose would grow without end. */
const METHODS: ReadonlySet<string> = new Set(
  'OPTIONS GET HEAD PUT DELETE MKCOL COPY MOVE PROPFIND PROPPATCH LOCK UNLOCK POST'.split(' '),
);

/** From a warm answer to a client's patience, s. */
const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

/** Up to what one call takes. */
const COMMITS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000];

/** Counts what a gateway does, for Prometheus. The only file that knows its client library. */
export function createMetrics(options: MetricsOptions): Metrics {
  const registry = new Registry();
  const traffic = new Traffic();
  const requests = requestMetrics(registry);
  readAtScrape(registry, options, traffic);
  let hasProcessMetrics = false;
  return {
    meter: createMeter(registry),
    answered(request, status, ms) {
      const method = METHODS.has(request.method ?? '') ? (request.method ?? '') : 'other';
      const client = options.familyOf(request);
      requests.total.inc({ method, client, status: status ?? 'none' });
      requests.seconds.observe({ method, client }, ms / 1000);
    },
    connected: (socket) => traffic.add(socket),
    text() {
      // Its timer and its observer live as long as the process, so they start with the first scrape.
      if (!hasProcessMetrics) collectProcessMetrics(registry);
      hasProcessMetrics = true;
      return registry.metrics();
    },
  };
}

/** Adds Node's own metrics: CPU, memory, event loop and collector. */
function collectProcessMetrics(registry: prometheus.Registry): void {
  const collect: typeof prometheus.collectDefaultMetrics = load('prom-client/lib/defaultMetrics.js');
  collect({ register: registry });
}

const TRACES_OF_A_PROXY = [
  'forwarded',
  'via',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-proto',
  'x-real-ip',
];

/** Whether metrics are told without a login: to this machine, unless a proxy says that it asks for another. */
export function isLocal(address: string, { headers }: IncomingMessage): boolean {
  return isLoopback(address) && !TRACES_OF_A_PROXY.some((name) => name in headers);
}

export async function answerMetrics(response: ServerResponse, metrics: Metrics): Promise<void> {
  const body = await metrics.text();
  response.writeHead(200, {
    'Content-Type': Registry.PROMETHEUS_CONTENT_TYPE,
    'Content-Length': Buffer.byteLength(body),
    'Cache-Control': 'no-store',
  });
  response.end(body);
}

function requestMetrics(registry: prometheus.Registry) {
  const registers = [registry];
  return {
    total: new Counter({
      name: 'davgate_http_requests_total',
      help: 'Requests of clients by method, program and status; none: the client left before the answer.',
      labelNames: ['method', 'client', 'status'],
      registers,
    }),
    seconds: new Histogram({
      name: 'davgate_http_request_duration_seconds',
      help: 'From the head of a request to the end of its answer.',
      labelNames: ['method', 'client'],
      buckets: SECONDS,
      registers,
    }),
  };
}

/** What the rooms below count. */
function createMeter(registry: prometheus.Registry): Meter {
  const registers = [registry];
  const calls = new Counter({
    name: 'davgate_api_calls_total',
    help: 'Requests to the storage service by endpoint and outcome, each try for itself.',
    labelNames: ['endpoint', 'outcome'],
    registers,
  });
  const callSeconds = new Histogram({
    name: 'davgate_api_call_duration_seconds',
    help: 'From sending a request to the storage service to its answer; of a download, to the head of the answer.',
    labelNames: ['endpoint'],
    buckets: SECONDS,
    registers,
  });
  const answers = new Counter({
    name: 'davgate_api_answers_total',
    help: 'Answers of the storage service by status; 429: it wants fewer calls.',
    labelNames: ['status'],
    registers,
  });
  const retries = new Counter({
    name: 'davgate_api_retries_total',
    help: 'Calls of the storage service that were made again, by what had gone wrong.',
    labelNames: ['reason'],
    registers,
  });
  const commits = new Histogram({
    name: 'davgate_commit_batch_size',
    help: 'Commits that went out in one call of upload_session/finish_batch_v2.',
    buckets: COMMITS,
    registers,
  });
  return {
    called({ route, outcome, ms }) {
      calls.inc({ endpoint: route, outcome });
      callSeconds.observe({ endpoint: route }, ms / 1000);
    },
    answered: (status) => answers.inc({ status }),
    retried: (reason) => retries.inc({ reason }),
    batched: (count) => commits.observe(count),
    ...cacheMetrics(registry),
  };
}

function cacheMetrics(registry: prometheus.Registry): Pick<Meter, 'lookedUp' | 'blockRead' | 'blockKept'> {
  const counter = <L extends string>(name: string, help: string, labelNames: L[] = []) =>
    new Counter({ name, help, labelNames, registers: [registry] });
  const lookups = counter(
    'davgate_metadata_lookups_total',
    'Entries and listings that were wanted; hit: known already, and so a call of the service saved.',
    ['result'],
  );
  const reads = counter('davgate_block_cache_hits_total', 'Pieces of files that came from the block cache.');
  const readBytes = counter('davgate_block_cache_hit_bytes_total', 'Bytes of files from the block cache.');
  const kept = counter(
    'davgate_block_cache_stored_total',
    'Blocks that were fetched and put into the cache.',
  );
  const keptBytes = counter('davgate_block_cache_stored_bytes_total', 'Bytes of those blocks.');
  return {
    lookedUp: (known) => lookups.inc({ result: known ? 'hit' : 'miss' }),
    blockRead(sizeBytes) {
      reads.inc();
      readBytes.inc(sizeBytes);
    },
    blockKept(sizeBytes) {
      kept.inc();
      keptBytes.inc(sizeBytes);
    },
  };
}

/** A metric without memory: what it says is asked for when somebody reads it. */
interface Scraped {
  /** Ends with `_total` when it only grows. */
  readonly name: string;
  readonly help: string;
  readonly labelNames: readonly string[];
  readonly readings: () => readonly Reading[];
}

interface Reading {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

function readAtScrape(
  registry: prometheus.Registry,
  { drives, blockCacheBytes }: MetricsOptions,
  traffic: Traffic,
): void {
  const ofDrives = (name: string, help: string, value: (drive: DriveGauges) => number): Scraped => ({
    name,
    help,
    labelNames: ['drive'],
    readings: () => drives().map((drive) => ({ labels: { drive: drive.name }, value: value(drive) })),
  });
  const all: readonly Scraped[] = [
    ofDrives('davgate_api_paused', '1 while the storage service wants no calls.', (drive) =>
      Number(drive.isPaused),
    ),
    ofDrives(
      'davgate_change_feed_alive',
      '1 while changes made elsewhere are seen as they happen.',
      (drive) => Number(drive.isFeedAlive),
    ),
    ofDrives(
      'davgate_metadata_cache_bytes',
      'Memory for what is known of files and folders.',
      (drive) => drive.metadataBytes,
    ),
    ofDrives(
      'davgate_held_files',
      'Empty files that were acknowledged and wait for their body.',
      (drive) => drive.placeholders,
    ),
    ofDrives(
      'davgate_journal_files',
      'Writes that were acknowledged and are not at the storage service yet.',
      (drive) => drive.journal.files,
    ),
    {
      name: 'davgate_journal_trouble',
      help: '1 while something hinders writes from leaving the journal, by reason.',
      labelNames: ['drive', 'reason'],
      readings: () =>
        drives().flatMap(({ name, journal: { trouble } }) =>
          trouble === undefined ? [] : { labels: { drive: name, reason: trouble }, value: 1 },
        ),
    },
    ofDrives('davgate_journal_bytes', 'Bytes of these writes.', (drive) => drive.journal.bytes),
    ofDrives(
      'davgate_lost_files',
      'Files in the lost-and-found folder: refused by the storage service.',
      (drive) => drive.journal.lostFiles,
    ),
    {
      name: 'davgate_api_queue_calls',
      help: 'Calls of the storage service that wait for their turn or run, by lane.',
      labelNames: ['drive', 'lane', 'state'],
      readings: () => drives().flatMap(queueReadings),
    },
    {
      name: 'davgate_api_bytes_total',
      help: 'Bytes of bodies to and from the storage service.',
      labelNames: ['drive', 'direction'],
      readings: () => drives().flatMap((drive) => byDirection({ drive: drive.name }, drive)),
    },
    {
      name: 'davgate_http_bytes_total',
      help: 'Bytes to and from clients, heads of requests and answers included.',
      labelNames: ['direction'],
      readings: () => byDirection({}, traffic.total()),
    },
    {
      name: 'davgate_block_cache_bytes',
      help: 'What the block cache takes on the disk.',
      labelNames: [],
      readings: () => [{ labels: {}, value: blockCacheBytes() }],
    },
  ];
  for (const scraped of all) registry.registerMetric(metricOf(scraped));
}

function metricOf({ readings, labelNames, ...about }: Scraped): prometheus.Counter | prometheus.Gauge {
  const Kind = about.name.endsWith('_total') ? Counter : Gauge;
  return new Kind({
    ...about,
    labelNames: [...labelNames],
    registers: [],
    collect() {
      this.reset();
      for (const { labels, value } of readings()) this.inc(labels, value);
    },
  });
}

function queueReadings({ name: drive, lanes }: DriveGauges): readonly Reading[] {
  return Object.entries(lanes).flatMap(([lane, { waiting, running }]) => [
    { labels: { drive, lane, state: 'waiting' }, value: waiting },
    { labels: { drive, lane, state: 'running' }, value: running },
  ]);
}

function byDirection(
  labels: Reading['labels'],
  bytes: { readonly sentBytes: number; readonly receivedBytes: number },
): readonly Reading[] {
  return [
    { labels: { ...labels, direction: 'sent' }, value: bytes.sentBytes },
    { labels: { ...labels, direction: 'received' }, value: bytes.receivedBytes },
  ];
}
