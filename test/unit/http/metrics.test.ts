import { request as requestTls } from 'node:https';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { createMetrics, type DriveGauges, type Metrics } from '../../../src/http/metrics.ts';
import { parseExposition, type Scrape } from '../../support/exposition.ts';
import { ANN, ANN_HEADER, listening, request } from '../../support/listening.ts';

function metricsOf(): Metrics {
  const metrics = createMetrics((userAgent) => (userAgent.startsWith('davfs2') ? 'davfs2' : 'other'));
  metrics.watch({ drives: () => [DRIVE], blockCacheBytes: () => 13, stateTrouble: () => undefined });
  return metrics;
}

const DRIVE: DriveGauges = {
  name: 'a "quoted"\\ drive',
  lanes: { commit: { waiting: 3, running: 1 } },
  isPaused: true,
  sentBytes: 5,
  receivedBytes: 7,
  metadataBytes: 11,
  placeholders: 2,
  journal: { files: 3, bytes: 4_000, lostFiles: 1 },
  isFeedAlive: false,
};

async function scrape(url: string): Promise<Scrape> {
  const answer = await fetch(`${url}.davgate/metrics`);
  expect(answer.status).toBe(200);
  expect(answer.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
  return parseExposition(await answer.text());
}

describe('access to the metrics', () => {
  test('metrics are answered to this machine without a login, to GET and HEAD', async () => {
    const { url, connect } = await listening({ users: [ANN], metrics: metricsOf() });
    await scrape(url);
    const head = await connect(request('HEAD', '/.davgate/metrics?x', 'Connection: close\r\n')).closed();
    expect(head).toMatch(/^HTTP\/1\.1 200 [\s\S]*\r\n\r\n$/);
  });

  test.each([
    'X-Forwarded-For: 192.0.2.1',
    'X-Forwarded-Host: files.example.org',
    'X-Forwarded-Proto: https',
    'X-Real-IP: 192.0.2.1',
    'Forwarded: for=192.0.2.1',
    'Via: 1.1 proxy',
  ])('metrics need a login when the request came through a proxy (%s)', async (header) => {
    const { connect } = await listening({ users: [ANN], metrics: metricsOf() });
    const get = (more: string) => connect(request('GET', '/.davgate/metrics', `${header}\r\n${more}`));
    expect(await get('').until('of this davgate')).toMatch(/^HTTP\/1\.1 401 /);
    expect(await get(ANN_HEADER).until('davgate_http_requests_total')).toMatch(/^HTTP\/1\.1 200 /);
  });

  test('metrics need a login over HTTP/1.0, which proxies speak that add no header', async () => {
    const { connect } = await listening({ users: [ANN], metrics: metricsOf() });
    const get = (lines = '') =>
      connect(`GET /.davgate/metrics HTTP/1.0\r\nHost: 127.0.0.1:8765\r\n${lines}\r\n`).closed();
    expect(await get()).toMatch(/^HTTP\/1\.1 401 /);
    expect(await get(ANN_HEADER)).toMatch(/^HTTP\/1\.1 200 [\s\S]*davgate_http_requests_total/);
  });

  test('the path of the metrics answers 404 to methods that write, and /metrics belongs to the drive', async () => {
    const { connect } = await listening({ metrics: metricsOf() });
    for (const method of ['PUT', 'DELETE', 'PROPFIND', 'POST'])
      expect(await connect(request(method, '/.davgate/metrics')).until('belongs to davgate')).toContain(
        ' 404 ',
      );
    expect(await connect(request('GET', '/metrics')).until('handled')).toContain(' 200 ');
  });
});

describe('metrics', () => {
  test('metrics count requests by method, client and status, and have a histogram of their duration', async () => {
    const { url } = await listening({
      metrics: metricsOf(),
      handle: async (message, response) => {
        response.writeHead(message.method === 'PUT' ? 201 : 404, []);
        response.end();
      },
    });
    await fetch(`${url}a`, { method: 'PUT', body: 'x' });
    await fetch(`${url}b`, { method: 'PUT', body: 'x' });
    await fetch(`${url}c`, { headers: { 'user-agent': 'davfs2/1.6.1' } });
    const { value, types } = await scrape(url);
    const total = 'davgate_http_requests_total';
    expect(value(total, { method: 'PUT', client: 'other', status: '201' })).toBe(2);
    expect(value(total, { method: 'GET', client: 'davfs2', status: '404' })).toBe(1);
    expect(value('davgate_http_request_duration_seconds_count', { method: 'PUT', client: 'other' })).toBe(2);
    expect(types.get('davgate_http_request_duration_seconds')).toBe('histogram');
  });

  test('metrics have no label that a client can choose: no method, path, user or User-Agent', async () => {
    const { url, connect } = await listening({ users: [ANN], metrics: metricsOf() });
    const send = (method: string, agent: string) =>
      connect(request(method, '/secret-path', `${ANN_HEADER}User-Agent: ${agent}\r\n`)).until('handled');
    await send('PURGE', 'one/1');
    const before = (await scrape(url)).series('davgate_http_requests_total');
    for (const [index, method] of ['M-SEARCH', 'SUBSCRIBE', 'BIND', 'TRACE'].entries())
      await send(method, `agent-${index}`);
    const after = await scrape(url);
    expect(after.series('davgate_http_requests_total')).toEqual(before);
    expect(
      after.value('davgate_http_requests_total', { method: 'other', client: 'other', status: '200' }),
    ).toBe(5);
    const text = await (await fetch(`${url}.davgate/metrics`)).text();
    expect(text).not.toMatch(/secret-path|agent-|M-SEARCH|"ann"/);
  });

  test('requests for health and metrics are not counted', async () => {
    const { url } = await listening({ metrics: metricsOf() });
    await fetch(`${url}.davgate/healthz`);
    await scrape(url);
    expect((await scrape(url)).series('davgate_http_requests_total')).toEqual([]);
  });

  test('a request whose client leaves before the answer is counted with the status "none"', async () => {
    let arrived = (): void => undefined;
    const here = new Promise<void>((resolve) => {
      arrived = resolve;
    });
    let left = (): void => undefined;
    const gone = new Promise<void>((resolve) => {
      left = resolve;
    });
    const { url, connect } = await listening({
      metrics: metricsOf(),
      handle: async (_message, response) => {
        response.once('close', left);
        arrived();
        await gone;
      },
    });
    const connection = connect(request('GET', '/'));
    await here;
    connection.socket.destroy();
    await gone;
    const { value } = await scrape(url);
    expect(value('davgate_http_requests_total', { method: 'GET', client: 'other', status: 'none' })).toBe(1);
  });

  test("metrics show the current gauges of drives and block cache, with the drive's name escaped", async () => {
    const { url } = await listening({ metrics: metricsOf() });
    const { value } = await scrape(url);
    const drive = 'a \\"quoted\\"\\\\ drive';
    expect(value('davgate_api_queue_calls', { drive, lane: 'commit', state: 'waiting' })).toBe(3);
    expect(value('davgate_api_queue_calls', { drive, lane: 'commit', state: 'running' })).toBe(1);
    expect(value('davgate_api_bytes_total', { drive, direction: 'sent' })).toBe(5);
    expect(value('davgate_api_bytes_total', { drive, direction: 'received' })).toBe(7);
    expect(value('davgate_api_paused', { drive })).toBe(1);
    expect(value('davgate_change_feed_alive', { drive })).toBe(0);
    expect(value('davgate_journal_files', { drive })).toBe(3);
    expect(value('davgate_journal_bytes', { drive })).toBe(4_000);
    expect(value('davgate_lost_files', { drive })).toBe(1);
    expect(value('davgate_metadata_cache_bytes', { drive })).toBe(11);
    expect(value('davgate_held_files', { drive })).toBe(2);
    expect(value('davgate_block_cache_bytes')).toBe(13);
    expect((await scrape(url)).value('davgate_api_bytes_total', { drive, direction: 'sent' })).toBe(5);
  });

  test('metrics show what the meter has counted: API calls, retries, batches and cache lookups', async () => {
    const metrics = metricsOf();
    const { url } = await listening({ metrics });
    const { meter } = metrics;
    meter.called({ route: 'files/upload', outcome: 'ok', ms: 70 });
    meter.called({ route: 'files/upload', outcome: 'contention', ms: 200 });
    meter.answered(429);
    meter.retried('contention');
    meter.batched(3);
    meter.batched(30);
    for (const known of [true, true, false]) meter.lookedUp(known);
    meter.blockRead(100);
    meter.blockKept(4096);
    const { value } = await scrape(url);
    expect(value('davgate_api_calls_total', { endpoint: 'files/upload', outcome: 'contention' })).toBe(1);
    const seconds = 'davgate_api_call_duration_seconds';
    expect(value(`${seconds}_sum`, { endpoint: 'files/upload' })).toBeCloseTo(0.27);
    expect(value(`${seconds}_bucket`, { endpoint: 'files/upload', le: '0.1' })).toBe(1);
    expect(value('davgate_api_answers_total', { status: '429' })).toBe(1);
    expect(value('davgate_api_retries_total', { reason: 'contention' })).toBe(1);
    expect(value('davgate_commit_batch_size_sum')).toBe(33);
    expect(value('davgate_commit_batch_size_bucket', { le: '5' })).toBe(1);
    expect(value('davgate_metadata_lookups_total', { result: 'hit' })).toBe(2);
    expect(value('davgate_metadata_lookups_total', { result: 'miss' })).toBe(1);
    expect(value('davgate_block_cache_hits_total')).toBe(1);
    expect(value('davgate_block_cache_hit_bytes_total')).toBe(100);
    expect(value('davgate_block_cache_stored_total')).toBe(1);
    expect(value('davgate_block_cache_stored_bytes_total')).toBe(4096);
  });

  test('metrics show the memory, processor time and event loop delay of the process', async () => {
    const { url } = await listening({ metrics: metricsOf() });
    const { value, types } = await scrape(url);
    expect(value('process_resident_memory_bytes')).toBeGreaterThan(1024 * 1024);
    expect(types.has('process_cpu_seconds_total') && types.has('nodejs_eventloop_lag_seconds')).toBe(true);
  });
});

describe('bytes to and from clients', () => {
  const BODY = 'x'.repeat(100_000);
  const handle = async (message: AsyncIterable<unknown>, response: { end(text: string): unknown }) => {
    for await (const _chunk of message);
    response.end(BODY);
  };

  test('metrics count the bytes of open and closed connections over http', async () => {
    const { url, connect } = await listening({ metrics: metricsOf(), handle });
    const put = request('PUT', '/', 'Content-Length: 100000\r\nConnection: close\r\n', BODY);
    const answer = await connect(put).closed();
    const open = connect(request('GET', '/'));
    const second = await open.until('x'.repeat(1000));
    expect(second).toContain(' 200 ');
    const { value } = await scrape(url);
    const received = value('davgate_http_bytes_total', { direction: 'received' });
    const sent = value('davgate_http_bytes_total', { direction: 'sent' });
    expect(received).toBeGreaterThanOrEqual(put.length);
    expect(received).toBeLessThan(put.length + 1000);
    expect(sent).toBeGreaterThanOrEqual(answer.length + BODY.length);
    expect(sent).toBeLessThan(answer.length + BODY.length + 1000);
  });

  test('metrics count the bytes of connections over https', async () => {
    const certificates = join(import.meta.dirname, '..', '..', 'support', 'certificates');
    const tls = { certFile: join(certificates, 'one.pem'), keyFile: join(certificates, 'one.key') };
    const metrics = metricsOf();
    const { url } = await listening({ metrics, handle, tls });
    await new Promise((resolve, reject) => {
      const outgoing = requestTls(
        url,
        { method: 'PUT', rejectUnauthorized: false, agent: false },
        (answer) => {
          answer.resume().on('close', resolve);
        },
      );
      outgoing.on('error', reject).end(BODY);
    });
    const { value } = parseExposition(await metrics.text());
    expect(value('davgate_http_bytes_total', { direction: 'received' })).toBeGreaterThanOrEqual(BODY.length);
    expect(value('davgate_http_bytes_total', { direction: 'sent' })).toBeGreaterThanOrEqual(BODY.length);
  });
});
