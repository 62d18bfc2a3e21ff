import { once } from 'node:events';
import { expect, test } from 'vitest';
import { createDavHandler } from '../../../src/dav/handler.ts';
import { ClientGone } from '../../../src/http/exchange.ts';
import { startGatewayServer } from '../../../src/http/gateway-server.ts';
import { silentLog } from '../../../src/util/log.ts';
import { eventually } from '../../support/eventually.ts';
import { ANN, listening, request } from '../../support/listening.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { MemoryFiles } from '../../support/memory-files.ts';
import { memoryState } from '../../support/memory-state.ts';
import { path } from '../../support/paths.ts';
import { connectRaw } from '../../support/raw-http.ts';
import { unhurried } from '../../support/unhurried.ts';

const CONNECTIONS = 30;

/** Three pipelined requests: Node reports a broken connection to the first only. */
const PIPELINED = request('GET', '/big.bin').repeat(3);

test('the signal of a request fires when its connection breaks, and the requests pipelined behind it never begin', async () => {
  const reasons: string[] = [];
  let begun = 0;
  const { connect, close } = await listening({
    clock: new ManualClock(),
    handle: async (_message, _response, _access, { signal }) => {
      begun += 1;
      await once(signal, 'abort');
      reasons.push(String(signal.reason));
    },
  });
  const connections = Array.from({ length: CONNECTIONS }, () => connect(PIPELINED));
  await eventually(() => expect(begun).toBe(CONNECTIONS));
  for (const { socket } of connections) socket.destroy();
  // The clock stands still, so no grace period ever ends.
  await close();
  expect(reasons).toEqual(Array.from({ length: CONNECTIONS }, () => 'ClientGone: the client has gone'));
  expect(begun).toBe(CONNECTIONS);
});

test('a signal that is first asked for after the connection broke is aborted already', async () => {
  const gone: boolean[] = [];
  let hasBegun = false;
  const { connect, close } = await listening({
    handle: async (_message, _response, _access, exchange) => {
      hasBegun = true;
      await exchange.ended;
      gone.push(exchange.signal.aborted, exchange.signal.reason instanceof ClientGone);
    },
  });
  const connection = connect(request('GET', '/'));
  await eventually(() => expect(hasBegun).toBe(true));
  connection.socket.destroy();
  await eventually(() => expect(gone).toEqual([true, true]));
  await close();
});

test('the signal of a request that was answered completely never fires', async () => {
  const signals: AbortSignal[] = [];
  const { connect, close } = await listening({
    handle: async (_message, response, _access, { signal }) => {
      signals.push(signal);
      response.end('handled');
    },
  });
  await connect(PIPELINED + request('GET', '/', 'Connection: close\r\n')).closed();
  await close();
  expect(signals.map(({ aborted }) => aborted)).toEqual([false, false, false, false]);
});

test('a delayed login ends when its client disconnects, and does not hold up the shutdown', async () => {
  const clock = new ManualClock();
  const { connect, close } = await listening({ users: [ANN], clock });
  const guess = (index: number) =>
    request('GET', '/', `Authorization: Basic ${Buffer.from(`ann:${index}`).toString('base64')}\r\n`);
  const connection = connect();
  for (let index = 0; index < 4; index++) {
    connection.send(guess(index));
    await eventually(async () =>
      expect((await connection.until('401')).match(/ 401 /g)).toHaveLength(index + 1),
    );
  }
  connection.send(guess(5));
  // One sleeper is the delayed login, the other the check for idle clients.
  await clock.untilSleeping(2);
  connection.socket.destroy();
  await close();
});

test('downloads that nobody reads, and those pipelined behind them, end when their connections break, and do not hold up the shutdown', async () => {
  const clock = new ManualClock();
  const state = memoryState();
  const files = new MemoryFiles({ clock, properties: state.properties });
  await files.write(path('/big.bin'), twelveMebibytes(), { mode: { if: 'any' } });
  const handleDav = createDavHandler({ clock, log: silentLog });
  let running = 0;
  const listener = await startGatewayServer({
    host: '127.0.0.1',
    port: 0,
    users: undefined,
    driveOf: () => ({ files, state }),
    ownNames: ['x'],
    log: silentLog,
    clock,
    async handle(exchange, access) {
      running += 1;
      await handleDav(exchange, access);
      running -= 1;
    },
  });
  const connections = Array.from({ length: CONNECTIONS }, () => connectRaw(listener.port, PIPELINED));
  for (const { socket } of connections) socket.pause();
  await eventually(() => expect(running).toBe(CONNECTIONS));
  for (const { socket } of connections) socket.destroy();
  await eventually(() => expect(running).toBe(0));
  await listener.close(unhurried());
});

async function* twelveMebibytes(): AsyncGenerator<Uint8Array> {
  for (let count = 0; count < 12; count++) yield Buffer.alloc(1024 * 1024, 7);
}
