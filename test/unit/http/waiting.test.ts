import { describe, expect, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { ANN, ANN_HEADER, listening, request } from '../../support/listening.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const HOUR_MS = 3_600_000;

/** What happened to the last body that a handler read, and a promise of it. */
function reader() {
  const sizes: number[] = [];
  let settle: (outcome: string) => void = () => undefined;
  const outcome = new Promise<string>((resolve) => {
    settle = resolve;
  });
  let notify = (): void => undefined;
  return {
    outcome,
    /** Resolves once the handler has got `sizeBytes`. */
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

describe('a client that takes its time', () => {
  test('a body that keeps coming, however slowly, is never cut', async () => {
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

  test('a body that stands still is cut, and the handler knows', async () => {
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

  test('a client is not cut for what we do not read, nor while it waits for leave or for the answer', async () => {
    const clock = new ManualClock();
    const releases: (() => void)[] = [];
    let begun = (): void => undefined;
    const all = new Promise<void>((resolve) => {
      begun = resolve;
    });
    const { connect } = await listening({
      clock,
      handle: async (message, response) => {
        // Once what we do not read has filled its buffer, it is not the client any more who keeps us waiting.
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
    const held = connect(request('PUT', '/2', 'Content-Length: 1\r\nExpect: 100-continue\r\n'));
    const waiting = connect(request('PUT', '/3', 'Content-Length: 1\r\n', 'a'));
    await all;
    await clock.advance(HOUR_MS);
    for (const release of releases) release();
    expect(await unread.until('handled')).toContain('200 OK');
    expect(await waiting.until('handled')).toContain('200 OK');
    await held.until('100 Continue');
    held.send('a');
    expect(await held.until('handled')).toContain('200 OK');
  });

  test('an answer that nobody takes is cut after a long time, not after a short one', async () => {
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

  test('a header that does not come to its end is answered 408', async () => {
    const { connect } = await listening({ limits: { headersTimeoutMs: 500 } });
    expect(await connect('GET / HTTP/1.1\r\nHost: x\r\nX-').closed()).toMatch(/^HTTP\/1\.1 408 /);
    expect(await connect().closed()).toMatch(/^(HTTP\/1\.1 408 |$)/);
  });

  test('an upload outlives the time for a header many times', async () => {
    const body = reader();
    const { connect } = await listening({
      // More than this machine may stand still before it reads the header of the upload itself.
      limits: { headersTimeoutMs: 1_000 },
      handle: (message, response) => body.handle(message, response),
    });
    const witness = () => connect('GET / HTTP/1.1\r\nHost: x\r\n').closed();
    const connection = connect(request('PUT', '/', 'Content-Length: 3\r\n'));
    for (let sent = 1; sent <= 3; sent++) {
      connection.send('a');
      await body.got(sent);
      // One header's time has passed once another connection has been cut for it.
      expect(await witness()).toContain('408');
    }
    expect(await connection.until('handled')).toContain('200 OK');
  });

  test('an idle connection may be used again for more than a minute, as the answer says', async () => {
    const { connect } = await listening();
    expect(await connect(request('GET', '/')).until('handled')).toContain('\r\nKeep-Alive: timeout=120\r\n');
  });

  test('an idle connection is closed in the end', async () => {
    const { connect } = await listening({ limits: { keepAliveTimeoutMs: 1_000 } });
    expect(await connect(request('GET', '/')).closed()).toContain('handled');
  });

  test('with too many connections, the one that has been silent longest is closed for a new one', async () => {
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

describe('closing', () => {
  /** A listener whose handler waits to be released. */
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
    let asked = (): void => undefined;
    const healthAsked = new Promise<void>((resolve) => {
      asked = resolve;
    });
    let handled = 0;
    const server = await listening({
      users: [ANN],
      clock,
      limits,
      health: () => {
        asked();
        return {};
      },
      handle: async (message, response) => {
        if (message.url === '/quick') return void response.end('quick');
        begin();
        if (message.url === '/streaming') response.write('begun');
        await released;
        handled += 1;
        response.end('handled');
      },
    });
    return { ...server, clock, release, begun, healthAsked, handled: () => handled };
  }

  test('running requests finish, with "Connection: close", before it resolves', async () => {
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

  test('an answer that has begun comes to its end', async () => {
    const { connect, close, release, begun } = await withRunning();
    const connection = connect(request('GET', '/streaming', ANN_HEADER));
    await begun;
    await connection.until('begun');
    const closing = close();
    release();
    await closing;
    expect(await connection.closed()).toMatch(/handled\r\n0\r\n\r\n$/);
  });

  test('what takes longer than the grace time is cut', async () => {
    const { connect, close, cutOff, begun, lines } = await withRunning();
    const connection = connect(request('PUT', '/', ANN_HEADER));
    await begun;
    const closing = close();
    cutOff();
    await closing;
    expect(await connection.closed()).toBe('');
    expect(lines[0]?.event).toBe('requests cut off at the end of the grace period');
  });

  test('health says that it drains, on a connection that is still there', async () => {
    const { connect, close, release, healthAsked } = await withRunning();
    const connection = connect(request('GET', '/streaming', ANN_HEADER));
    await connection.until('begun');
    const closing = close();
    connection.send(request('GET', '/.davgate/healthz'));
    await healthAsked;
    release();
    await closing;
    expect(await connection.closed()).toMatch(/handled[\s\S]*HTTP\/1\.1 503 [\s\S]*"status":"draining"/);
  });

  test('requests in a row on one connection that breaks are all over with it', async () => {
    const { connect, close, begun, release, handled } = await withRunning();
    const connection = connect(request('GET', '/1', ANN_HEADER) + request('GET', '/2', ANN_HEADER));
    await begun;
    connection.socket.destroy();
    release();
    await close();
    expect(handled()).toBe(2);
  });

  test('closing twice is closing once', async () => {
    const { close, port } = await listening();
    await Promise.all([close(), close()]);
    await close();
    await expect(fetch(`http://127.0.0.1:${port}/`)).rejects.toThrow();
  });
});
