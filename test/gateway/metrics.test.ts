import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Gateway, startGateway } from '../../src/app/gateway.ts';
import { silentLog } from '../../src/util/log.ts';
import { Networks } from '../../src/util/networks.ts';
import { parseExposition, type Scrape } from '../support/exposition.ts';
import { startTestService, type TestService } from '../support/service.ts';

const DRIVE = { drive: 'default' };

let directory: string;
let service: TestService;
let gateway: Gateway;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'davgate-metrics-'));
  service = await startTestService();
  const { url, appKey, appSecret, refreshToken } = service;
  const credentials = { appKey, appSecret, refreshToken };
  gateway = await startGateway(
    {
      listen: { host: '127.0.0.1', port: 0 },
      log: { level: 'info', format: 'text' },
      logRequests: true,
      crossOrigins: [],
      trustedProxies: new Networks(),
      basePath: '',
      tls: undefined,
      publicUrl: undefined,
      dataDirectory: join(directory, 'data'),
      cacheDirectory: join(directory, 'cache'),
      writeMode: 'through',
      redisUrl: undefined,
      drives: [
        {
          name: DRIVE.drive,
          service: { apiUrl: url, contentUrl: url, notifyUrl: url, credentials },
          root: '',
          deletePolicy: 'auto',
        },
      ],
      users: undefined,
    },
    silentLog,
  );
});
afterEach(async () => {
  await gateway.close();
  await service.close();
  await rm(directory, { recursive: true, force: true });
});

async function ask(method: string, path: string, body?: Uint8Array, agent = 'davfs2/1.6.1'): Promise<number> {
  const headers = { 'user-agent': agent };
  const answer = await fetch(`${gateway.url}${path}`, { method, headers, ...(body && { body }) });
  await answer.arrayBuffer();
  return answer.status;
}

async function scrape(): Promise<Scrape> {
  return parseExposition(await (await fetch(`${gateway.url}.davgate/metrics`)).text());
}

/** Scrapes until the gauge is at least 1; returns that scrape. */
async function scrapeUntil(gauge: string, labels = {}): Promise<Scrape> {
  for (;;) {
    const found = await scrape();
    if (found.value(gauge, labels) >= 1) return found;
  }
}

test('metrics count the requests, calls, bytes and cache hits of one PUT and two GETs', async () => {
  const body = new Uint8Array(600_000).fill(7);
  expect(await ask('PUT', 'metrics', body)).toBe(201);
  const written = await scrape();
  const upload = { endpoint: 'files/upload', outcome: 'ok' };
  expect(written.value('davgate_api_calls_total', upload)).toBe(1);
  expect(written.value('davgate_api_call_duration_seconds_count', { endpoint: 'files/upload' })).toBe(1);
  expect(written.value('davgate_api_calls_total', { endpoint: 'oauth2/token', outcome: 'ok' })).toBe(1);
  const sent = { ...DRIVE, direction: 'sent' };
  expect(written.value('davgate_api_bytes_total', sent)).toBeGreaterThanOrEqual(body.length);
  expect(written.value('davgate_api_bytes_total', sent)).toBeLessThan(body.length + 10_000);

  // A user's file named `metrics` is not mistaken for the metrics page.
  expect([await ask('GET', 'metrics'), await ask('GET', 'metrics')]).toEqual([200, 200]);
  const read = await scrape();
  expect(read.value('davgate_api_calls_total', { endpoint: 'files/download', outcome: 'ok' })).toBe(1);
  expect(read.value('davgate_block_cache_stored_bytes_total')).toBe(body.length);
  expect(read.value('davgate_block_cache_hit_bytes_total')).toBe(body.length);
  // A hit is counted for each piece that is read, and their number may change.
  expect(read.value('davgate_block_cache_hits_total')).toBeGreaterThanOrEqual(1);
  const stored = await scrapeUntil('davgate_block_cache_bytes');
  expect(stored.value('davgate_block_cache_bytes')).toBeGreaterThanOrEqual(body.length);
  const received = { ...DRIVE, direction: 'received' };
  expect(read.value('davgate_api_bytes_total', received)).toBeGreaterThanOrEqual(body.length);
  const gets = { method: 'GET', client: 'davfs2', status: '200' };
  expect(read.value('davgate_http_requests_total', gets)).toBe(2);
  expect(read.value('davgate_http_requests_total', { method: 'PUT', client: 'davfs2', status: '201' })).toBe(
    1,
  );
});

test('metrics count a repeated listing as cache hits and as no API call', async () => {
  await scrapeUntil('davgate_change_feed_alive', DRIVE);
  await ask('PROPFIND', '');
  const cold = await scrape();
  for (let time = 0; time < 3; time++) await ask('PROPFIND', '');
  const warm = await scrape();
  const listing = { endpoint: 'files/list_folder', outcome: 'ok' };
  expect(cold.value('davgate_api_calls_total', listing)).toBe(1);
  expect(warm.value('davgate_api_calls_total', listing)).toBe(1);
  const gained = (result: string) =>
    warm.value('davgate_metadata_lookups_total', { result }) -
    cold.value('davgate_metadata_lookups_total', { result });
  expect(gained('hit')).toBeGreaterThanOrEqual(3);
  expect(gained('miss')).toBe(0);
  expect(warm.value('davgate_metadata_cache_bytes', DRIVE)).toBeGreaterThan(0);
});

test('metrics count one retry for each answer with 429', async () => {
  await ask('PROPFIND', '');
  service.service.setFaults({ 'rate-per-second': 1, 'rate-burst': 1 });
  await Promise.all(['a', 'b'].map((name) => ask('PUT', name, new Uint8Array(1))));
  service.service.setFaults({});
  const { value } = await scrape();
  const limited = value('davgate_api_answers_total', { status: '429' });
  expect(limited).toBeGreaterThanOrEqual(1);
  expect(value('davgate_api_retries_total', { reason: 'rate-limited' })).toBe(limited);
});

test('metrics show each lane of the call queue, and that the account is not paused', async () => {
  await ask('PROPFIND', '');
  const { value, series } = await scrape();
  for (const lane of ['metadata', 'read', 'commit', 'upload', 'session', 'prefetch'])
    for (const state of ['waiting', 'running'])
      expect(series('davgate_api_queue_calls')).toContain(
        `davgate_api_queue_calls{drive="default",lane="${lane}",state="${state}"}`,
      );
  expect(value('davgate_api_paused', DRIVE)).toBe(0);
});
