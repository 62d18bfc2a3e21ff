import { once } from 'node:events';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { Networks } from '../../../src/util/networks.ts';
import { eventually } from '../../support/eventually.ts';
import { listening, request } from '../../support/listening.ts';
import type { RawConnection } from '../../support/raw-http.ts';

const isClosed = ({ socket }: RawConnection) => socket.destroyed;

test('a client with too many connections loses its longest idle one, and its busy connection stays open', async () => {
  let release = (): void => undefined;
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  const { connect, lines } = await listening({
    limits: { connectionsPerAddressMax: 3 },
    handle: async ({ url }, response) => {
      if (url === '/slow') {
        response.write('begun');
        await released;
      }
      response.end('handled');
    },
  });
  const busy = connect(request('GET', '/slow'));
  await busy.until('begun');
  const [first, second] = [connect(), connect()];
  await Promise.all([first, second].map(({ socket }) => once(socket, 'connect')));
  second.send(request('GET', '/'));
  await second.until('handled');
  first.send(request('GET', '/'));
  await first.until('handled');
  const next = connect(request('GET', '/'));
  expect(await next.until('handled')).toContain('200 OK');
  await second.closed();
  expect([busy, first, next].map(isClosed)).toEqual([false, false, false]);
  release();
  expect(await busy.until('handled')).toContain('begun');
  expect(lines).toContainEqual({
    event: 'too many connections: the longest idle are closed',
    fields: { address: '127.0.0.1', limit: 3 },
  });
});

test('a new connection is closed when every other connection of its client has a running request', async () => {
  const { connect, close } = await listening({
    limits: { connectionsPerAddressMax: 2 },
    handle: async (_message, response, _access, { signal }) => {
      response.write('begun');
      await once(signal, 'abort');
    },
  });
  const busy = [connect(request('GET', '/')), connect(request('GET', '/'))];
  for (const connection of busy) await connection.until('begun');
  expect(await connect(request('GET', '/')).closed()).toBe('');
  expect(busy.map(isClosed)).toEqual([false, false]);
  for (const { socket } of busy) socket.destroy();
  await close();
});

test('a trusted proxy can open more connections than the limit for one address', async () => {
  const { connect } = await listening({
    limits: { connectionsPerAddressMax: 1 },
    trustedProxies: new Networks(['127.0.0.1']),
  });
  const all = [connect(), connect(), connect()];
  for (const connection of all) {
    connection.send(request('GET', '/'));
    expect(await connection.until('handled')).toContain('200 OK');
  }
  expect(all.map(isClosed)).toEqual([false, false, false]);
});

test('2,100 silent connections do not keep another request from being answered, and all but 199 of them are closed', async () => {
  // On a busy machine the flood takes longer than a header may.
  const { connect } = await listening({ limits: { headersTimeoutMs: 600_000 } });
  const flood: RawConnection[] = [];
  // In batches, because the system's accept queue drops connections beyond its length.
  while (flood.length < 2_100) {
    const batch = Array.from({ length: 100 }, () => connect());
    await Promise.all(batch.map(({ socket }) => once(socket, 'connect')));
    flood.push(...batch);
  }
  expect(await connect(request('GET', '/')).until('handled')).toContain('200 OK');
  // 200 is the default limit for one address, and the answered connection counts too.
  await eventually(() => expect(flood.filter((connection) => !isClosed(connection))).toHaveLength(199));
});

test('a connection in an unfinished TLS handshake counts toward the limit and is closed first', async () => {
  const file = (name: string) => join(import.meta.dirname, '../../support/certificates', name);
  const { connect } = await listening({
    tls: { certFile: file('one.pem'), keyFile: file('one.key') },
    limits: { connectionsMax: 2 },
  });
  const all = [connect(), connect(), connect()];
  await all[0]?.closed();
  expect(all.map(isClosed)).toEqual([true, false, false]);
});

test('a request that is pipelined behind another one begins when that one is answered', async () => {
  const begun: string[] = [];
  const releases = new Map<string, () => void>();
  const { connect } = await listening({
    handle: async ({ url = '' }, response) => {
      begun.push(url);
      await new Promise<void>((resolve) => releases.set(url, resolve));
      response.end(`answer to ${url}`);
    },
  });
  const body = 'x'.repeat(1000);
  const put = (target: string) => request('PUT', target, `Content-Length: ${body.length}\r\n`, body);
  const connection = connect(put('/1') + put('/2') + request('GET', '/3'));
  for (const [index, target] of ['/1', '/2', '/3'].entries()) {
    await eventually(() => expect(releases.has(target)).toBe(true));
    expect(begun).toHaveLength(index + 1);
    releases.get(target)?.();
    await connection.until(`answer to ${target}`);
  }
});

test('a client that pipelines 32 requests is answered, and one that pipelines more is disconnected', async () => {
  let begun = 0;
  const { connect, lines } = await listening({
    handle: async (_request, response) => {
      begun += 1;
      response.end(`number ${begun}`);
    },
  });
  const troubles = () => lines.filter(({ event }) => event !== 'request');
  const most = connect(request('GET', '/').repeat(31) + request('GET', '/', 'Connection: close\r\n'));
  expect(await most.closed()).toContain('number 32');
  expect(troubles()).toEqual([]);
  begun = 0;
  await connect(request('GET', '/').repeat(1000)).closed();
  expect(begun).toBeLessThanOrEqual(1);
  expect(troubles()).toEqual([
    {
      event: 'too many requests at once on one connection: it is closed',
      fields: { address: '127.0.0.1', limit: 32 },
    },
  ]);
});
