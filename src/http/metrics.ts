import type { Socket } from 'node:net';
import type prometheus from 'prom-client';
// Only the classes used here: the whole library also loads OpenTelemetry's API, which takes longer than all of the rest.
import Counter from 'prom-client/lib/counter.js';
import Gauge from 'prom-client/lib/gauge.js';
import Histogram from 'prom-client/lib/histogram.js';
import Registry from 'prom-client/lib/registry.js';
import type { HttpRequest } from '../util/http-messages.ts';
import type { Meter } from '../util/meter.ts';
import { packageVersion } from '../util/package.ts';

/** The type of `Metrics.text`. */
export const METRICS_CONTENT_TYPE = Registry.PROMETHEUS_CONTENT_TYPE;

/** The state of a drive at the moment of a scrape. */
export interface DriveGauges {
  /** The drive's name in the configuration. */
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
    /** The reason why its writes cannot leave the journal. */
    readonly trouble?: string;
  };
}

/** Values that are read at each scrape. */
export interface Gauges {
  readonly drives: () => readonly DriveGauges[];
  /** Size of the block cache on the disk. */
  readonly blockCacheBytes: () => number;
  /** Returns the reason why the state of the drives cannot be reached. */
  readonly stateTrouble: () => string | undefined;
}

export interface Metrics {
  /** Counts what the lower layers do. */
  readonly meter: Meter;
  /** Reports these values from now on. Call it once. */
  watch(gauges: Gauges): void;
  /** Counts a finished exchange. `status` is `undefined` when the client left before the answer. */
  answered(request: HttpRequest, status: number | undefined, ms: number): void;
  /** Counts the bytes of a client's connection. */
  connected(socket: Socket): void;
  /** Returns all metrics in the text format of Prometheus. */
  text(): Promise<string>;
}

/** Methods that have a label of their own. All others are `other`, because clients could invent any number of labels. */
const METHODS: ReadonlySet<string> = new Set(
  'OPTIONS GET HEAD PUT PATCH DELETE MKCOL COPY MOVE PROPFIND PROPPATCH LOCK UNLOCK POST'.split(' '),
);

/** Maximum number of `User-Agent`s whose program is remembered. Real clients have few, and a hostile one makes them up. */
const PROGRAMS_MAX = 100;

/** Buckets for durations, in seconds: from a cached answer to the limit of a client's patience. */
const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

/** Buckets for batch sizes, up to the API's maximum. */
const COMMITS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000];

/**
 * Creates the metrics of a gateway. `programOf` names the client program of a `User-Agent`, as one of a few names. Only
 * this file uses the client library of Prometheus.
 */
export function createMetrics(programOf: (userAgent: string) => string): Metrics {
  const registry = new Registry();
  const traffic = new Traffic();
  const requests = requestMetrics(registry);
  const programs = new Map<string, string>();
  const program = (userAgent: string): string => {
    const known = programs.get(userAgent);
    if (known !== undefined) return known;
    if (programs.size >= PROGRAMS_MAX) programs.clear();
    const name = programOf(userAgent);
    programs.set(userAgent, name);
    return name;
  };
  let processMetrics: Promise<void> | undefined;
  return {
    meter: createMeter(registry),
    watch: (gauges) => readAtScrape(registry, gauges, traffic),
    answered(request, status, ms) {
      const method = METHODS.has(request.method ?? '') ? (request.method ?? '') : 'other';
      const client = program(request.headers['user-agent'] ?? '');
      requests.count({ method, client, status: String(status ?? 'none') });
      requests.seconds.observe({ method, client }, ms / 1000);
    },
    connected: (socket) => traffic.add(socket),
    async text() {
      // Collecting starts with the first scrape, because its timer and observer run until the process ends.
      processMetrics ??= collectProcessMetrics(registry);
      await processMetrics;
      return registry.metrics();
    },
  };
}

/** Adds Node's own metrics: CPU, memory, event loop and collector. */
async function collectProcessMetrics(registry: prometheus.Registry): Promise<void> {
  const { default: collect } = await import('prom-client/lib/defaultMetrics.js');
  collect({ register: registry });
}

function requestMetrics(registry: prometheus.Registry) {
  const totals = new Map<string, { readonly labels: RequestLabels; value: number }>();
  registry.registerMetric(
    metricOf({
      name: 'davgate_http_requests_total',
      help: 'Requests of clients by method, program and status; none: the client left before the answer.',
      labelNames: ['method', 'client', 'status'],
      readings: () => [...totals.values()],
    }),
  );
  return {
    count(labels: RequestLabels) {
      const key = `${labels.method} ${labels.client} ${labels.status}`;
      const total = totals.get(key);
      if (total) total.value += 1;
      else totals.set(key, { labels, value: 1 });
    },
    seconds: new Histogram({
      name: 'davgate_http_request_duration_seconds',
      help: 'Time from the head of a request to the end of its answer.',
      labelNames: ['method', 'client'],
      buckets: SECONDS,
      registers: [registry],
    }),
  };
}

type RequestLabels = Readonly<Record<'method' | 'client' | 'status', string>>;

/** Creates the metrics that the lower layers count. */
function createMeter(registry: prometheus.Registry): Meter {
  const registers = [registry];
  const calls = new Counter({
    name: 'davgate_api_calls_total',
    help: 'Requests to the storage service by endpoint and outcome; each retry counts.',
    labelNames: ['endpoint', 'outcome'],
    registers,
  });
  const callSeconds = new Histogram({
    name: 'davgate_api_call_duration_seconds',
    help: 'Time from sending a request to the storage service to its answer; for a download, to the head of the answer.',
    labelNames: ['endpoint'],
    buckets: SECONDS,
    registers,
  });
  const answers = new Counter({
    name: 'davgate_api_answers_total',
    help: 'Answers of the storage service by status; 429: it limits the rate of calls.',
    labelNames: ['status'],
    registers,
  });
  const retries = new Counter({
    name: 'davgate_api_retries_total',
    help: 'Retried calls of the storage service, by reason.',
    labelNames: ['reason'],
    registers,
  });
  const commits = new Histogram({
    name: 'davgate_commit_batch_size',
    help: 'Commits sent in one call of upload_session/finish_batch_v2.',
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

/** Counts in plain numbers, which a scrape reads, because a call of the library takes longer than a lookup. */
function cacheMetrics(registry: prometheus.Registry): Pick<Meter, 'lookedUp' | 'blockRead' | 'blockKept'> {
  const counts = { hits: 0, misses: 0, reads: 0, readBytes: 0, kept: 0, keptBytes: 0 };
  const counter = (name: string, help: string, value: () => number) =>
    registry.registerMetric(
      metricOf({ name, help, labelNames: [], readings: () => [{ labels: {}, value: value() }] }),
    );
  registry.registerMetric(
    metricOf({
      name: 'davgate_metadata_lookups_total',
      help: 'Lookups of entries and listings; hit: answered from the cache, without a call of the service.',
      labelNames: ['result'],
      readings: () => [
        { labels: { result: 'hit' }, value: counts.hits },
        { labels: { result: 'miss' }, value: counts.misses },
      ],
    }),
  );
  counter(
    'davgate_block_cache_hits_total',
    'Reads that were answered from the block cache.',
    () => counts.reads,
  );
  counter('davgate_block_cache_hit_bytes_total', 'Bytes read from the block cache.', () => counts.readBytes);
  counter(
    'davgate_block_cache_stored_total',
    'Blocks that were fetched and stored in the cache.',
    () => counts.kept,
  );
  counter(
    'davgate_block_cache_stored_bytes_total',
    'Bytes stored in the block cache.',
    () => counts.keptBytes,
  );
  return {
    lookedUp(known) {
      if (known) counts.hits += 1;
      else counts.misses += 1;
    },
    blockRead(sizeBytes) {
      counts.reads += 1;
      counts.readBytes += sizeBytes;
    },
    blockKept(sizeBytes) {
      counts.kept += 1;
      counts.keptBytes += sizeBytes;
    },
  };
}

/** A metric whose values are read at each scrape. */
interface Scraped {
  /** Ends with `_total` for a counter. */
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
  { drives, blockCacheBytes, stateTrouble }: Gauges,
  traffic: Traffic,
): void {
  const ofDrives = (name: string, help: string, value: (drive: DriveGauges) => number): Scraped => ({
    name,
    help,
    labelNames: ['drive'],
    readings: () => drives().map((drive) => ({ labels: { drive: drive.name }, value: value(drive) })),
  });
  const build = { version: packageVersion(), node: process.versions.node };
  const all: readonly Scraped[] = [
    ofDrives('davgate_api_paused', '1 while the storage service accepts no calls.', (drive) =>
      Number(drive.isPaused),
    ),
    ofDrives(
      'davgate_change_feed_alive',
      '1 while changes made elsewhere are seen as they happen.',
      (drive) => Number(drive.isFeedAlive),
    ),
    ofDrives(
      'davgate_metadata_cache_bytes',
      'Memory used by the metadata cache.',
      (drive) => drive.metadataBytes,
    ),
    ofDrives(
      'davgate_held_files',
      'Acknowledged empty files that wait for their body.',
      (drive) => drive.placeholders,
    ),
    ofDrives(
      'davgate_journal_files',
      'Acknowledged writes that have not reached the storage service.',
      (drive) => drive.journal.files,
    ),
    {
      name: 'davgate_journal_trouble',
      help: '1 while writes cannot leave the journal, by reason.',
      labelNames: ['drive', 'reason'],
      readings: () =>
        drives().flatMap(({ name, journal: { trouble } }) =>
          trouble === undefined ? [] : { labels: { drive: name, reason: trouble }, value: 1 },
        ),
    },
    ofDrives('davgate_journal_bytes', 'Bytes of the writes in the journal.', (drive) => drive.journal.bytes),
    ofDrives(
      'davgate_lost_files',
      'Files in the lost-and-found folder, refused by the storage service.',
      (drive) => drive.journal.lostFiles,
    ),
    {
      name: 'davgate_shared_state_up',
      help: '1 while the Redis of --redis can be reached; always 1 without it.',
      labelNames: [],
      readings: () => [{ labels: {}, value: Number(stateTrouble() === undefined) }],
    },
    {
      name: 'davgate_api_queue_calls',
      help: 'Calls of the storage service that wait or run, by lane.',
      labelNames: ['drive', 'lane', 'state'],
      readings: () => drives().flatMap(queueReadings),
    },
    {
      name: 'davgate_api_bytes_total',
      help: 'Bytes of request and response bodies exchanged with the storage service.',
      labelNames: ['drive', 'direction'],
      readings: () => drives().flatMap((drive) => byDirection({ drive: drive.name }, drive)),
    },
    {
      name: 'davgate_http_bytes_total',
      help: 'Bytes exchanged with clients, including headers.',
      labelNames: ['direction'],
      readings: () => byDirection({}, traffic.total()),
    },
    {
      name: 'davgate_build_info',
      help: '1; the labels are the versions of davgate and of Node.',
      labelNames: ['version', 'node'],
      readings: () => [{ labels: build, value: 1 }],
    },
    {
      name: 'davgate_block_cache_bytes',
      help: 'Size of the block cache on the disk.',
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

/** Bytes of all connections, closed ones included. With TLS, encrypted bytes. */
class Traffic {
  readonly #open = new Set<Socket>();
  #closed = { receivedBytes: 0, sentBytes: 0 };

  add(socket: Socket): void {
    this.#open.add(socket);
    socket.once('close', () => {
      this.#open.delete(socket);
      this.#closed = this.#plus(socket, this.#closed);
    });
  }

  total(): { readonly receivedBytes: number; readonly sentBytes: number } {
    let sum = this.#closed;
    for (const socket of this.#open) sum = this.#plus(socket, sum);
    return sum;
  }

  #plus(socket: Socket, { receivedBytes, sentBytes }: { receivedBytes: number; sentBytes: number }) {
    return { receivedBytes: receivedBytes + socket.bytesRead, sentBytes: sentBytes + socket.bytesWritten };
  }
}
