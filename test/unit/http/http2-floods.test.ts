import { once } from 'node:events';
import { describe, expect, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import {
  connectFrames,
  counted,
  frame,
  Http2Client,
  ok,
  POST,
  POST_FIELDS,
  serving,
  waiting,
} from '../../support/http2.ts';

/** Codes of RST_STREAM. */
const CANCEL = 8;
const INTERNAL_ERROR = 2;

describe('floods', () => {
  test.each([CANCEL, INTERNAL_ERROR])(
    'a client that resets each of its requests at once with code %i loses its connection, and their work ends',
    async (code) => {
      let [running, most] = [0, 0];
      const { port, close } = await serving(async ({ signal }) => {
        running += 1;
        most = Math.max(most, running);
        if (!signal.aborted) await once(signal, 'abort');
        running -= 1;
      });
      const socket = await connectFrames(port);
      const closed = new Promise((resolve) => socket.once('close', resolve));
      let id = 1;
      const send = () => {
        if (socket.destroyed) return;
        const pairs = Array.from({ length: 100 }, (_, index) => [
          frame(1, 4, id + 2 * index, POST_FIELDS),
          frame(3, 0, id + 2 * index, `\0\0\0${String.fromCharCode(code)}`),
        ]);
        id += 200;
        socket.write(Buffer.concat(pairs.flat()), () => setImmediate(send));
      };
      send();
      await closed;
      await eventually(() => expect(running).toBe(0));
      expect(most).toBeLessThanOrEqual(200);
      await close();
    },
  );

  const PING = frame(6, 0, 0, '\0'.repeat(8));
  const SETTINGS = frame(4, 0, 0, '');
  const EMPTY_DATA = frame(0, 0, 1, '');
  const HEADERS_WITHOUT_END = frame(1, 0, 1, '\x82');
  const CONTINUATION = frame(9, 0, 1, '');
  test.each([
    ['PING', POST, PING],
    ['SETTINGS', POST, SETTINGS],
    ['CONTINUATION', HEADERS_WITHOUT_END, CONTINUATION],
    ['empty DATA', POST, EMPTY_DATA],
  ])('a flood of %s frames closes the connection', async (_, first, flood) => {
    const { port, url } = await serving(counted);
    const socket = await connectFrames(port);
    const closed = new Promise((resolve) => socket.once('close', resolve));
    socket.write(first);
    const send = () => {
      if (!socket.destroyed) socket.write(Buffer.concat(Array(100).fill(flood)), () => setImmediate(send));
    };
    send();
    await closed;
    expect((await new Http2Client(url).send('GET', '/')).status).toBe(200);
  });

  test('requests over the limit for one address answer 503 at once', async () => {
    const { signals, release, handle } = waiting();
    const { url } = await serving(handle, { limits: { connectionsPerAddressMax: 2 } });
    const client = new Http2Client(url);
    const running = [client.send('GET', '/1'), client.send('GET', '/2')];
    await eventually(() => expect(signals).toHaveLength(2));
    expect(await client.send('GET', '/3')).toMatchObject({ status: 503, headers: { 'retry-after': '1' } });
    release();
    for (const answer of running) expect((await answer).status).toBe(200);
    expect((await client.send('GET', '/4')).status).toBe(200);
  });

  test('a client has at most a hundred requests at once on a connection', async () => {
    const { url } = await serving(ok);
    const { session } = new Http2Client(url);
    await once(session, 'remoteSettings');
    expect(session.remoteSettings.maxConcurrentStreams).toBe(100);
  });
});
