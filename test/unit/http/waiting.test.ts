import { describe, expect, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { ANN, ANN_HEADER, listening, request } from '../../support/listening.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const HOUR_MS = 3_600_000;

/** Returns a handler that reads a body, and promises of its progress and outcome. */
function reader() {
  const sizes: number[] = [];
  let settle: (outcome: string) => void = () => undefined;
  const outcome = new Promise<string>((resolve) => {
    settle = resolve;
  });
  let notify = (): void => undefined;
  return {
    outcome,
    /** Resolves once the handler has received `sizeBytes`. */
    async got(sizeBytes: number): Promise<void> {
      while (sizes.reduce((sum, size) => sum + size, 0) < sizeBytes)
        await new Promise<void>((resolve) => {
          notify = resolve;
        });
    },
    async handle(message: AsyncIterable<Uint8Array>, response: { end(text: string): void }): Promise<void> {
      try {
        for await (const chunk of message) {
          sizes.push(chunk.length);
          notify();
        }
        settle('whole');
      } catch {
        settle('cut');
      }
      response.end('handled');
    },
  };
}

describe('slow clients', () => {
  test('a body that arrives slowly but steadily is never cut off', async () => {
    const clock = new ManualClock();
    const body = reader();
    const { connect } = await listening({
      clock,
      handle: (message, response) => body.handle(message, response),
    });
    const connection = connect(request('PUT', '/', 'Content-Length: 50\r\n'));
    for (let sent = 1; sent <= 50; sent++) {
      connection.send('a');
      await body.got(sent);
      await clock.advance(100_000);
    }
    expect(await connection.until('handled')).toContain('200 OK');
    expect(await body.outcome).toBe('whole');
  });

  test('a body that stands still is cut off, its handler gets an error, and the client is logged', async () => {
    const clock = new ManualClock();
    const body = reader();
    const { connect, lines } = await listening({
      clock,
      handle: (message, response) => body.handle(message, response),
    });
    const connection = connect(request('PUT', '/a', 'Content-Length: 50\r\n', 'abc'));
    await body.got(3);
    await clock.advance(60_000);
    connection.send('d');
    await body.got(4);
    await clock.advance(60_000);
    connection.send('e');
    await body.got(5);
    await clock.advance(160_000);
    expect(await body.outcome).toBe('cut');
    expect(await connection.closed()).toBe('');
    expect(lines[0]).toEqual({
      event: 'idle client disconnected',
      fields: { address: '127.0.0.1', path: '/a' },
    });
  });

  test('a client is not cut off while the handler does not read, before 100 Continue, or while it waits for the answer', async () => {
    const clock = new ManualClock();
    const releases: (() => void)[] = [];
    let begun = (): void => undefined;
    const all = new Promise<void>((resolve) => {
      begun = resolve;
    });
    const { connect } = await listening({
      clock,
      handle: async (message, response) => {
        // Once the unread bytes have filled the buffer, it is no longer the client that delays the request.
        while (message.url === '/1' && message.readableLength < message.readableHighWaterMark)
          await new Promise((resolve) => setImmediate(resolve));
        if (releases.length === 2) begun();
        await new Promise<void>((resolve) => releases.push(resolve));
        for await (const _ of message);
        response.end('handled');
      },
    });
    const size = 10_000_000;
    const unread = connect(request('PUT', '/1', `Content-Length: ${size}\r\n`));
    unread.send(Buffer.alloc(size));
    const awaitingContinue = connect(request('PUT', '/2', 'Content-Length: 1\r\nExpect: 100-continue\r\n'));
    const waiting = connect(request('PUT', '/3', 'Content-Length: 1\r\n', 'a'));
    await all;
    await clock.advance(HOUR_MS);
    for (const release of releases) release();
    expect(await unread.until('handled')).toContain('200 OK');
    expect(await waiting.until('handled')).toContain('200 OK');
    await awaitingContinue.until('100 Continue');
    awaitingContinue.send('a');
    expect(await awaitingContinue.until('handled')).toContain('200 OK');
  });

  test('an answer that the client does not read is cut off after the idle timeout, and not before', async () => {
    const clock = new ManualClock();
    let isRunning = true;
    let filled = (): void => undefined;
    const full = new Promise<void>((resolve) => {
      filled = resolve;
    });
    const { connect, close, lines } = await listening({
      clock,
      limits: { answerIdleTimeoutMs: 30 * 60_000 },
      handle: (_message, response) =>
        new Promise((resolve) => {
          response.once('close', () => {
            isRunning = false;
            resolve();
          });
          response.end(Buffer.alloc(64 * 1024 * 1024));
          filled();
        }),
    });
    const connection = connect();
    connection.socket.pause();
    connection.send(request('GET', '/'));
    await full;
    await clock.advance(29 * 60_000);
    expect(isRunning).toBe(true);
    await clock.advance(60 * 60_000);
    await close();
    expect(lines.at(-1)).toMatchObject({ event: 'request', fields: { status: 200, cut: true } });
  });

  test('a request header that never ends is answered 408', async () => {
    const { connect } = await listening({ limits: { headersTimeoutMs: 500 } });
    expect(await connect('GET / HTTP/1.1\r\nHost: x\r\nX-').closed()).toMatch(/^HTTP\/1\.1 408 /);
    expect(await connect().closed()).toMatch(/^(HTTP\/1\.1 408 |$)/);
  });

  test('an upload may take several times as long as the timeout for a header', async () => {
    const body = reader();
    const { connect } = await listening({
      // Longer than a busy machine delays the header of the upload itself.
      limits: { headersTimeoutMs: 1_000 },
      handle: (message, response) => body.handle(message, response),
    });
    const witness = () => connect('GET / HTTP/1.1\r\nHost: x\r\n').closed();
    const connection = connect(request('PUT', '/', 'Content-Length: 3\r\n'));
    for (let sent = 1; sent <= 3; sent++) {
      connection.send('a');
      await body.got(sent);
      // One header timeout has passed when another connection has been cut off for it.
      expect(await witness()).toContain('408');
    }
    expect(await connection.until('handled')).toContain('200 OK');
  });

  test('an answer announces that its idle connection stays open for 120 seconds', async () => {
    const { connect } = await listening();
    expect(await connect(request('GET', '/')).until('handled')).toContain('\r\nKeep-Alive: timeout=120\r\n');
  });

  test('an idle connection is closed after the keep-alive timeout', async () => {
    const { connect } = await listening({ limits: { keepAliveTimeoutMs: 1_000 } });
    expect(await connect(request('GET', '/')).closed()).toContain('handled');
  });

  test('beyond the connection limit the longest idle connection is closed for a new one, which is logged once', async () => {
    const { connect, lines } = await listening({ limits: { connectionsMax: 2 } });
    const [first, second] = [connect(request('GET', '/')), connect(request('GET', '/'))];
    await first.until('handled');
    await second.until('handled');
    first.send(request('GET', '/again'));
    await eventually(() => expect(lines.map(({ fields }) => fields['path'])).toContain('/again'));
    expect(await connect(request('GET', '/')).until('handled')).toContain('200 OK');
    await second.closed();
    expect(first.socket.destroyed).toBe(false);
    expect(await connect(request('GET', '/')).until('handled')).toContain('200 OK');
    await first.closed();
    const refused = lines.filter(
      ({ event }) => event === 'too many connections: the longest idle are closed',
    );
    expect(refused).toHaveLength(1);
  });
});

describe('graceful shutdown', () => {
  /** Starts a listener whose handler waits for `release`. */
  async function withRunning(limits = {}) {
    const clock = new ManualClock();
    let release = (): void => undefined;
    let begin = (): void => undefined;
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    const begun = new Promise<void>((resolve) => {
      begin = resolve;
    });
    let handled = 0;
    const server = await listening({
      users: [ANN],
      clock,
      limits,
      handle: async (message, response) => {
        if (message.url === '/quick') return void response.end('quick');
        begin();
        if (message.url === '/streaming') response.write('begun');
        await released;
        handled += 1;
        response.end('handled');
      },
    });
    return { ...server, clock, release, begun, handled: () => handled };
  }

  test('close waits for running requests, answers them with "Connection: close" and accepts no new connection', async () => {
    const { connect, close, release, begun, handled, port } = await withRunning();
    const connection = connect(request('PUT', '/', ANN_HEADER));
    await begun;
    const idle = connect(request('GET', '/quick', ANN_HEADER));
    await idle.until('quick');
    const silent = connect();
    await new Promise((resolve) => silent.socket.once('connect', resolve));
    const closing = close().then(() => handled());
    expect(await idle.closed()).toContain('quick');
    expect(await connect(request('GET', '/quick', ANN_HEADER)).closed()).toBe('');
    await expect(fetch(`http://127.0.0.1:${port}/`)).rejects.toThrow();
    release();
    expect(await connection.closed()).toMatch(/200 OK[\s\S]*Connection: close[\s\S]*handled$/);
    expect(await closing).toBe(1);
    expect(await silent.closed()).toBe('');
  });

  test('close waits until an answer that has begun is complete', async () => {
    const { connect, close, release, begun } = await withRunning();
    const connection = connect(request('GET', '/streaming', ANN_HEADER));
    await begun;
    await connection.until('begun');
    const closing = close();
    release();
    await closing;
    expect(await connection.closed()).toMatch(/handled\r\n0\r\n\r\n$/);
  });

  test('close cuts off requests that run longer than the grace period, and logs that', async () => {
    const { connect, close, cutOff, begun, lines } = await withRunning();
    const connection = connect(request('PUT', '/', ANN_HEADER));
    await begun;
    const closing = close();
    cutOff();
    await closing;
    expect(await connection.closed()).toBe('');
    expect(lines[0]?.event).toBe('requests cut off at the end of the grace period');
  });

  test('a request on a connection that breaks is handled before close resolves', async () => {
    const { connect, close, begun, release, handled } = await withRunning();
    const connection = connect(request('GET', '/1', ANN_HEADER));
    await begun;
    connection.socket.destroy();
    release();
    await close();
    expect(handled()).toBe(1);
  });

  test('close can be called several times', async () => {
    const { close, port } = await listening();
    await Promise.all([close(), close()]);
    await close();
    await expect(fetch(`http://127.0.0.1:${port}/`)).rejects.toThrow();
  });
});
