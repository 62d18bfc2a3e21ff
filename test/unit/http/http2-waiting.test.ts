import { once } from 'node:events';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { connect as connectTls } from 'node:tls';
import { describe, expect, test } from 'vitest';
import type { Exchange } from '../../../src/http/exchange.ts';
import { eventually } from '../../support/eventually.ts';
import { Gate } from '../../support/gate.ts';
import { connectFrames, Http2Client, serving } from '../../support/http2.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const MINUTE_MS = 60_000;

/** Returns a handler that answers when it is released, or at once below `/now`. */
function waiting() {
  let release = (): void => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  let begun = 0;
  return {
    begun: () => begun,
    release,
    async handle(exchange: Exchange): Promise<void> {
      begun += 1;
      if (exchange.path !== '/now') await Promise.race([released, once(exchange.signal, 'abort')]);
      await exchange.answer({ status: 200, headers: {}, body: 'handled' });
    },
  };
}

describe('slow clients over HTTP/2', () => {
  test('a body that stands still resets its stream alone, and the client is logged', async () => {
    const clock = new ManualClock();
    const outcomes: string[] = [];
    let got = 0;
    const { url, lines } = await serving(
      async (exchange) => {
        if (exchange.path === '/now') return exchange.answer({ status: 200, headers: {}, body: 'handled' });
        try {
          for await (const piece of exchange.body()) got += piece.length;
          outcomes.push('whole');
        } catch (error) {
          outcomes.push((error as Error).name);
        }
      },
      { clock },
    );
    const client = new Http2Client(url);
    const stalled = client.begin('PUT', '/a');
    const closed = new Promise((resolve) => stalled.once('close', resolve));
    stalled.write('abc');
    await eventually(() => expect(got).toBe(3));
    await clock.advance(MINUTE_MS);
    stalled.write('d');
    await eventually(() => expect(got).toBe(4));
    await clock.advance(MINUTE_MS);
    expect((await client.send('GET', '/now')).text).toBe('handled');
    expect(outcomes).toEqual([]);
    await clock.advance(2 * MINUTE_MS);
    await closed;
    expect(outcomes).toEqual(['ClientGone']);
    expect(lines.map(({ event, fields }) => [event, fields['path']])).toContainEqual([
      'idle client disconnected',
      '/a',
    ]);
    expect((await client.send('GET', '/now')).text).toBe('handled');
  });

  test('a body that the gateway does not read yet is not taken for one that stands still', async () => {
    const clock = new ManualClock();
    const gate = new Gate();
    const { url } = await serving(
      async (exchange) => {
        await gate.pass();
        let got = 0;
        for await (const piece of exchange.body()) got += piece.length;
        await exchange.answer({ status: 200, headers: {}, body: `${got} bytes` });
      },
      { clock },
    );
    const answer = new Http2Client(url).send('PATCH', '/a', {}, Buffer.alloc(1000));
    await gate.reached;
    await clock.advance(60 * MINUTE_MS);
    gate.open();
    expect((await answer).text).toBe('1000 bytes');
  });

  test('an answer that the client does not take is cut off after the idle timeout, and not before', async () => {
    const clock = new ManualClock();
    const { url, lines } = await serving(
      (exchange) => exchange.answer({ status: 200, headers: {}, body: Buffer.alloc(8_000_000) }),
      { clock, limits: { answerIdleTimeoutMs: 30 * MINUTE_MS } },
    );
    const stream = new Http2Client(url).begin('GET', '/');
    await once(stream, 'response');
    stream.pause();
    await clock.advance(29 * MINUTE_MS);
    expect(lines).toEqual([]);
    await clock.advance(60 * MINUTE_MS);
    await eventually(() =>
      expect(lines.at(-1)).toMatchObject({ event: 'request', fields: { status: 200, cut: true } }),
    );
  });

  test('a connection without a request is told to end after the keep-alive timeout, and not before', async () => {
    const clock = new ManualClock();
    const { url } = await serving(waiting().handle, { clock });
    const client = new Http2Client(url);
    const goaway = once(client.session, 'goaway');
    expect((await client.send('GET', '/now')).status).toBe(200);
    await clock.advance(1.5 * MINUTE_MS);
    expect((await client.send('GET', '/now')).status).toBe(200);
    await clock.advance(1.5 * MINUTE_MS);
    expect(client.session.closed).toBe(false);
    await clock.advance(MINUTE_MS);
    await goaway;
    await client.closed();
  });

  test('a connection that sends no request is closed after the time for a header, also if the client does not close it', async () => {
    const clock = new ManualClock();
    const { port } = await serving(waiting().handle, { clock });
    const socket = await connectFrames(port);
    const closed = new Promise((resolve) => socket.once('close', resolve));
    await once(socket, 'data');
    await clock.advance(MINUTE_MS);
    await closed;
  });

  test('a connection with a request under way stays open however long the answer takes', async () => {
    const clock = new ManualClock();
    const { handle, begun, release } = waiting();
    const { url } = await serving(handle, { clock });
    const answer = new Http2Client(url).send('GET', '/');
    await eventually(() => expect(begun()).toBe(1));
    await clock.advance(60 * MINUTE_MS);
    release();
    expect((await answer).text).toBe('handled');
  });
});

describe('graceful shutdown over HTTP/2', () => {
  test('close tells clients that no new request is taken, waits for those under way, and closes idle connections at once', async () => {
    const { handle, begun, release } = waiting();
    const { url, close } = await serving(handle);
    const [busy, idle] = [new Http2Client(url), new Http2Client(url)];
    await idle.send('GET', '/now');
    const answer = busy.send('GET', '/');
    await eventually(() => expect(begun()).toBe(2));
    const goaway = once(busy.session, 'goaway');
    const closing = close();
    await Promise.all([goaway, idle.closed()]);
    expect(busy.session.closed).toBe(true);
    release();
    expect(await answer).toMatchObject({ status: 200, text: 'handled' });
    await Promise.all([closing, busy.closed()]);
  });

  test('a connection whose TLS handshake ends after close is told that no request is taken', async () => {
    const { handle, begun, release } = waiting();
    const { url, port, close } = await serving(handle);
    const early = connect({ port, host: '127.0.0.1' });
    await once(early, 'connect');
    // Connections are accepted in turn, so that the server has the earlier one too.
    const busy = new Http2Client(url).send('GET', '/');
    await eventually(() => expect(begun()).toBe(1));
    const closing = close();
    const late = new Http2Client(url, {
      createConnection: () => connectTls({ socket: early, rejectUnauthorized: false, ALPNProtocols: ['h2'] }),
    });
    const goaway = once(late.session, 'goaway');
    await late.closed();
    await goaway;
    release();
    expect((await busy).text).toBe('handled');
    await closing;
  });

  test('close lets an answer that has begun arrive whole', async () => {
    const { url, close } = await serving((exchange) =>
      exchange.answer({ status: 200, headers: {}, body: Buffer.alloc(8_000_000, 'x') }),
    );
    const stream = new Http2Client(url).begin('GET', '/');
    await once(stream, 'response');
    const closing = close();
    expect(await text(stream)).toHaveLength(8_000_000);
    await closing;
  });

  test('close cuts off requests that run longer than the grace period', async () => {
    const { handle, begun } = waiting();
    const { url, close, cutOff, lines } = await serving(handle);
    const client = new Http2Client(url);
    client.begin('GET', '/');
    await eventually(() => expect(begun()).toBe(1));
    const closing = close();
    cutOff();
    await closing;
    expect(lines.map(({ event }) => event)).toContain('requests cut off at the end of the grace period');
  });
});
