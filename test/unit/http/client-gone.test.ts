import { once } from 'node:events';
import { expect, test } from 'vitest';
import { createDavHandler } from '../../../src/dav/handler.ts';
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

/** Three requests in a row: Node tells the second and third nothing when their connection breaks. */
const PIPELINED = request('GET', '/big.bin').repeat(3);

test('the signals of all pipelined requests fire when their connection breaks', async () => {
  const reasons: string[] = [];
  let begun = 0;
  const { connect, close } = await listening({
    clock: new ManualClock(),
    handle: async (_message, _response, _access, signal) => {
      begun += 1;
      await once(signal, 'abort');
      reasons.push(String(signal.reason));
    },
  });
  const connections = Array.from({ length: CONNECTIONS }, () => connect(PIPELINED));
  await eventually(() => expect(begun).toBe(3 * CONNECTIONS));
  for (const { socket } of connections) socket.destroy();
  // By a clock that stands still, no grace time ever ends.
  await close();
  expect(reasons).toEqual(Array.from({ length: 3 * CONNECTIONS }, () => 'ClientGone: the client has gone'));
});

test('the signal of a request that was answered whole never fires', async () => {
  const signals: AbortSignal[] = [];
  const { connect, close } = await listening({
    handle: async (_message, response, _access, signal) => {
      signals.push(signal);
      response.end('handled');
    },
  });
  await connect(PIPELINED + request('GET', '/', 'Connection: close\r\n')).closed();
  await close();
  expect(signals.map(({ aborted }) => aborted)).toEqual([false, false, false, false]);
});

test('a login that is held back is over when its client has gone', async () => {
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
  // Beside the looks for clients that stand still.
  await clock.untilSleeping(2);
  connection.socket.destroy();
  await close();
});

test('pipelined downloads that nobody reads are over when their connections break, and hold up no shutdown', async () => {
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
    ownNames: ['x'],
    log: silentLog,
    clock,
    async handle(exchange) {
      running += 1;
      await handleDav(exchange, { principal: '', drive: { files, state } });
      running -= 1;
    },
  });
  const connections = Array.from({ length: CONNECTIONS }, () => connectRaw(listener.port, PIPELINED));
  for (const { socket } of connections) socket.pause();
  await eventually(() => expect(running).toBe(3 * CONNECTIONS));
  for (const { socket } of connections) socket.destroy();
  await eventually(() => expect(running).toBe(0));
  await listener.close(unhurried());
});

async function* twelveMebibytes(): AsyncGenerator<Uint8Array> {
  for (let count = 0; count < 12; count++) yield Buffer.alloc(1024 * 1024, 7);
}
