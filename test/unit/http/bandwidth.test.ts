import { describe, expect, test } from 'vitest';
import type { Bandwidth } from '../../../src/config/grant.ts';
import type { Exchange } from '../../../src/http/exchange.ts';
import { LISTENER_LIMITS } from '../../../src/http/limits.ts';
import { elapsedMs } from '../../../src/util/clock.ts';
import { eventually } from '../../support/eventually.ts';
import { ANN, ANN_HEADER, type Listening, listening, request } from '../../support/listening.ts';
import { ManualClock } from '../../support/manual-clock.ts';

// Rates are measured by a clock that stands still unless a test turns it: whatever the machine does, a byte that passes
// without a wait passes at no time at all.

/** No check of idle connections: it would be the next event of the clock. */
const limits = {
  bodyIdleTimeoutMs: Number.POSITIVE_INFINITY,
  answerIdleTimeoutMs: Number.POSITIVE_INFINITY,
};

/** Bytes that pass at once after a pause are those of this time, in ms. */
const BURST_MS = 250;

interface Setup {
  readonly clock: ManualClock;
  readonly server: Listening;
  /** Number of downloads that have begun. */
  readonly begun: () => number;
  /** Bodies that have arrived so far, in bytes. */
  readonly received: () => number;
}

/** Starts a server that answers GET with `?BYTES` bytes, and counts the bodies of PUT. */
async function serve(whole: Bandwidth | undefined, own?: Bandwidth): Promise<Setup> {
  const clock = new ManualClock();
  let receivedBytes = 0;
  let begun = 0;
  const handle = async (exchange: Exchange) => {
    const { request, query } = exchange;
    if (request.method === 'PUT') {
      for await (const piece of exchange.body()) receivedBytes += piece.length;
      return exchange.answer({ status: 201, headers: {}, body: undefined });
    }
    begun += 1;
    const sizeBytes = Number(query.get('bytes'));
    if (query.has('memory'))
      return exchange.answer({ status: 200, headers: {}, body: Buffer.alloc(sizeBytes, 'x') });
    exchange.writeHead(request.method === 'PROPFIND' ? 207 : 200, {}, sizeBytes);
    for (let left = sizeBytes; left > 0 && !exchange.signal.aborted; left -= 100_000)
      await exchange.write(Buffer.alloc(Math.min(left, 100_000), 'x'));
    exchange.response.end();
  };
  const server = await listening({
    clock,
    limits: { ...LISTENER_LIMITS, ...limits },
    bandwidth: whole,
    users: [
      { ...ANN, ...(own && { bandwidth: own }) },
      { ...ANN, name: 'bob' },
    ],
    handle: (_request, _response, _access, exchange) => handle(exchange),
  });
  // The passwords are known from now on, and cost no time.
  for (const login of [LAST, BOB]) await server.connect(request('GET', '/f?bytes=0', login)).closed();
  const before = begun;
  return { clock, server, begun: () => begun - before, received: () => receivedBytes };
}

const LAST = `${ANN_HEADER}Connection: close\r\n`;

const BOB = LAST.replace(/Basic .*\r/, `Basic ${Buffer.from('bob:secret').toString('base64')}\r`);

/** Returns the length of the answer, and by the clock how long it took. */
async function timed(
  { clock, server }: Pick<Setup, 'clock' | 'server'>,
  first: string,
): Promise<{ readonly bytes: number; readonly ms: number }> {
  const start = clock.instant();
  const answer = await clock.during(server.connect(first).closed());
  return { bytes: answer.length - answer.indexOf('\r\n\r\n') - 4, ms: elapsedMs(clock, start) };
}

const get = (bytes: number, more = '') => request('GET', `/f?bytes=${bytes}${more}`, LAST);

async function* bytesOf(count: number): AsyncIterable<Uint8Array> {
  yield Buffer.alloc(count, 'x');
}

function expectDuration(ms: number, bytes: number, bytesPerSecond: number): void {
  const wantedMs = (bytes * 1000) / bytesPerSecond - BURST_MS;
  // A piece of up to 50 ms is sent before its time, and waits of less than 5 ms are saved up.
  expect(ms).toBeGreaterThanOrEqual(wantedMs - 60);
  expect(ms).toBeLessThanOrEqual(wantedMs + 5);
}

describe('a bandwidth limit', () => {
  test.each(['', '&memory'])(
    'a download of GET /f?bytes=…%s gets the bytes of the limit in a second',
    async (how) => {
      const setup = await serve({ downloadBytes: 100_000 });
      const { bytes, ms } = await timed(setup, get(1_000_000, how));
      expect(bytes).toBe(1_000_000);
      expectDuration(ms, 1_000_000, 100_000);
    },
  );

  test('an upload is read at the limit, whether its length is announced or not', async () => {
    const setup = await serve({ uploadBytes: 100_000 });
    const body = 'x'.repeat(500_000);
    const announced = request('PUT', '/f', `${LAST}Content-Length: 500000\r\n`, body);
    expectDuration((await timed(setup, announced)).ms, 500_000, 100_000);
    await setup.clock.advance(1_000);
    const chunked = `${(500_000).toString(16)}\r\n${body}\r\n0\r\n\r\n`;
    const second = request('PUT', '/f', `${LAST}Transfer-Encoding: chunked\r\n`, chunked);
    expectDuration((await timed(setup, second)).ms, 500_000, 100_000);
    expect(setup.received()).toBe(1_000_000);
  });

  test('limits of one direction leave the other as it is', async () => {
    const setup = await serve({ uploadBytes: 1_000 });
    expect((await timed(setup, get(1_000_000))).ms).toBe(0);
  });

  test('all users together stay within the limit of the gateway, and a user within their own', async () => {
    const setup = await serve({ downloadBytes: 200_000 }, { downloadBytes: 50_000 });
    expectDuration((await timed(setup, get(250_000))).ms, 250_000, 50_000);
    const { clock, server } = setup;
    await clock.advance(1_000);
    const start = clock.instant();
    const ann = server.connect(get(200_000));
    const bob = server.connect(request('GET', '/f?bytes=800000', BOB));
    await clock.untilSleeping(2);
    await clock.during(Promise.all([ann.closed(), bob.closed()]));
    const ms = elapsedMs(clock, start);
    expect(ms).toBeGreaterThan(1_000_000 / 200 - BURST_MS - 60);
    expect(ms).toBeLessThan((1_000_000 / 200) * 1.2);
  });

  test('shared links, which need no login, are limited with all other downloads', async () => {
    const clock = new ManualClock();
    const server = await listening({
      clock,
      limits: { ...LISTENER_LIMITS, ...limits },
      bandwidth: { downloadBytes: 100_000 },
      openRoute: (exchange) => {
        const body = { sizeBytes: 500_000, bytes: bytesOf(500_000) };
        return exchange.answer({ status: 200, headers: {}, body });
      },
    });
    const link = request('GET', '/.davgate/scl/fi/x', 'Connection: close\r\n');
    const { bytes, ms } = await timed({ clock, server }, link);
    expect(bytes).toBe(500_000);
    expectDuration(ms, 500_000, 100_000);
  });

  test('two downloads of a user get the same share', async () => {
    const { clock, server, begun } = await serve(undefined, { downloadBytes: 100_000 });
    const [one, other] = [server.connect(get(500_000)), server.connect(get(500_000))];
    await eventually(() => expect(begun()).toBe(2));
    const ends = [one.closed(), other.closed()];
    await clock.during(Promise.race(ends));
    const shares = [one, other].map(({ socket }) => socket.bytesRead);
    expect(Math.min(...shares)).toBeGreaterThan(450_000);
    await clock.during(Promise.all(ends));
  });

  test('listings and health checks do not wait while a download uses all of the limit', async () => {
    const { clock, server } = await serve({ downloadBytes: 1_000 });
    const download = server.connect(get(1_000_000));
    await clock.untilSleeping();
    const listing = await server.connect(request('PROPFIND', '/f?bytes=1000000', LAST)).closed();
    expect(listing.length).toBeGreaterThan(1_000_000);
    const health = await server
      .connect(request('GET', '/.davgate/healthz', 'Connection: close\r\n'))
      .closed();
    expect(health).toMatch(/^HTTP\/1.1 200 /);
    download.socket.destroy();
  });

  test('a client that disconnects ends its wait at once, and leaves no timer', async () => {
    const { clock, server } = await serve({ downloadBytes: 1_000 });
    const { socket } = server.connect(get(1_000_000));
    await clock.untilSleeping();
    socket.destroy();
    await eventually(() => expect(clock.sleeping).toBe(0));
    await eventually(() => expect(server.lines.filter(({ fields }) => fields['cut'])).toHaveLength(1));
  });

  test('clients that leave while they wait for their turn cost those who come after them nothing', async () => {
    const { clock, server, begun } = await serve({ downloadBytes: 100_000 });
    const leaving = Array.from({ length: 100 }, () => server.connect(get(5_000, '&memory')));
    await eventually(() => expect(begun()).toBe(100));
    const next = server.connect(get(5_000));
    await eventually(() => expect(begun()).toBe(101));
    for (const { socket } of leaving) socket.destroy();
    await eventually(() => expect(clock.sleeping).toBe(1));
    const start = clock.instant();
    await clock.during(next.closed());
    expect(elapsedMs(clock, start)).toBeLessThan(200);
  });

  test('an upload whose client disconnects ends when the bytes that have arrived are counted', async () => {
    const { clock, server } = await serve({ uploadBytes: 1_000 });
    const head = request('PUT', '/f', `${LAST}Content-Length: 1000000\r\n`, 'x'.repeat(100_000));
    const { socket } = server.connect(head);
    await clock.untilSleeping();
    socket.destroy();
    await clock.during(
      eventually(() => expect(server.lines.filter(({ fields }) => fields['cut'])).toHaveLength(1)),
    );
    expect(clock.sleeping).toBe(0);
  });

  test('a drain lifts the limit, so that a running download ends at once', async () => {
    const { clock, server } = await serve({ downloadBytes: 1_000 });
    const download = server.connect(get(1_000_000));
    await clock.untilSleeping();
    await server.close();
    expect((await download.closed()).length).toBeGreaterThan(1_000_000);
    expect(clock.sleeping).toBe(0);
  });
});
