import { expect, test } from 'vitest';
import { ANN, ANN_HEADER, listening, request } from '../../support/listening.ts';

test('health answers 200 without a login, with the given facts, and HEAD gets no body', async () => {
  const { url, connect } = await listening({
    users: [ANN],
    health: () => ({ drives: 2, status: 'ignored' }),
  });
  const answer = await fetch(`${url}.davgate/healthz?x`);
  expect(answer.status).toBe(200);
  expect(answer.headers.get('content-type')).toBe('application/json');
  expect(await answer.json()).toEqual({ status: 'ok', drives: 2 });
  const head = await connect(request('HEAD', '/.davgate/healthz', 'Connection: close\r\n')).closed();
  expect(head).toMatch(/^HTTP\/1\.1 200 [\s\S]*\r\n\r\n$/);
});

test('health answers 503 while the listener drains', async () => {
  let release = (): void => undefined;
  const { connect, close } = await listening({
    health: () => ({}),
    handle: (_message, response) =>
      new Promise((resolve) => {
        response.write('begun');
        release = () => {
          response.end();
          resolve();
        };
      }),
  });
  const connection = connect(request('GET', '/') + request('GET', '/.davgate/healthz'));
  await connection.until('begun');
  const closing = close();
  release();
  expect(await connection.closed()).toMatch(/HTTP\/1\.1 503 [\s\S]*\r\n\r\n\{"status":"draining"\}$/);
  await closing;
});

test('after announceClose checks answer 503, and all requests are answered, on old and new connections, each with Connection: close', async () => {
  let begun = (): void => undefined;
  const isBegun = new Promise<void>((resolve) => {
    begun = resolve;
  });
  let release = (): void => undefined;
  const { connect, listener } = await listening({
    handle: async ({ url }, _response, _access, exchange) => {
      if (url === '/slow')
        await new Promise<void>((resolve) => {
          release = resolve;
          begun();
        });
      await exchange.answer({ status: 200, headers: {}, body: 'handled' });
    },
  });
  const [running, idle] = [connect(request('GET', '/slow')), connect(request('GET', '/'))];
  expect(await idle.until('handled')).not.toContain('Connection: close');
  await isBegun;
  listener.announceClose();
  idle.send(request('GET', '/'));
  release();
  const answered = /200 OK(?:\r\n.*)*\r\nConnection: close\r\n[\s\S]*handled$/;
  for (const connection of [running, idle, connect(request('GET', '/'))])
    expect(await connection.closed()).toMatch(answered);
  expect(await connect(request('GET', '/.davgate/readyz')).closed()).toMatch(
    / 503 [\s\S]*\{"status":"unready","reason":"draining"\}$/,
  );
  expect(await connect(request('GET', '/.davgate/healthz')).closed()).toMatch(
    / 503 [\s\S]*\{"status":"draining"\}$/,
  );
});

test('readyz answers 200 without a login and under a foreign host name, and 503 with the reason why requests cannot be answered', async () => {
  let reason: string | undefined;
  const { connect } = await listening({ users: [ANN], ownNames: [], unreadiness: () => reason });
  const connection = connect(request('GET', '/.davgate/readyz?x'));
  expect(await connection.until('"ready"}')).toMatch(/^HTTP\/1\.1 200 [\s\S]*\r\n\r\n\{"status":"ready"\}$/);
  reason = 'the moon is full';
  connection.send(request('GET', '/.davgate/readyz', 'Connection: close\r\n'));
  expect(await connection.closed()).toMatch(
    /HTTP\/1\.1 503 [\s\S]*\r\n\r\n\{"status":"unready","reason":"the moon is full"\}$/,
  );
});

test.each([
  '/.davgate',
  '/.davgate/',
  '/.davgate/metrics',
  '/%2Edavgate/healthz',
  '/.DAVGATE/healthz',
  '//.davgate/healthz',
])('the path %s is not part of the drive: it answers 404, and 401 without a login', async (path) => {
  const { connect } = await listening({ users: [ANN] });
  const connection = connect(request('GET', path, ANN_HEADER));
  expect(await connection.until('belongs to davgate')).toMatch(/^HTTP\/1\.1 404 /);
  expect(await connect(request('GET', path)).until('of this davgate')).toMatch(/^HTTP\/1\.1 401 /);
  expect(await connect(request('PUT', '/.davgate/healthz')).until('of this davgate')).toMatch(
    /^HTTP\/1\.1 401 /,
  );
});

test.each(['/.davgate', 'http://x/.davgate/mine', '//%2EDAVGATE/mine'])(
  'MOVE to %s answers 403',
  async (to) => {
    const { connect } = await listening();
    const connection = connect(request('MOVE', '/mine', `Destination: ${to}\r\n`));
    expect(await connection.until('belongs to davgate')).toMatch(/^HTTP\/1\.1 403 /);
  },
);

test.each(['/healthz', '/a/.davgate/healthz', '/.davgate2', '/.davgat%zz'])(
  'the path %s is part of the drive',
  async (path) => {
    const { connect } = await listening();
    expect(await connect(request('GET', path)).until('handled')).toContain('200 OK');
  },
);
