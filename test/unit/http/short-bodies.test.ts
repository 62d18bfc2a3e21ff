import { setTimeout } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { type GatewayServer, startGatewayServer } from '../../../src/http/gateway-server.ts';
import { silentLog } from '../../../src/util/log.ts';
import { connectRaw } from '../../support/raw-http.ts';

let server: GatewayServer | undefined;
afterEach(() => server?.close(AbortSignal.abort()));

/**
 * Starts a server that answers each request with its body. `pause` comes before the body is read; `atOnce`: what is here
 * already is taken in one piece.
 */
async function echoing(pause: () => Promise<unknown>, atOnce = false): Promise<GatewayServer> {
  server = await startGatewayServer({
    host: '127.0.0.1',
    port: 0,
    users: undefined,
    driveOf: () => undefined,
    log: silentLog,
    async handle(exchange) {
      await pause();
      const pieces: Uint8Array[] = [];
      const here = atOnce ? await exchange.bodyHere() : undefined;
      if (here) pieces.push(here);
      else for await (const piece of exchange.body()) pieces.push(piece);
      const body = `[${Buffer.concat(pieces).toString()}]`;
      await exchange.answer({ status: 200, headers: {}, body });
    },
  });
  return server;
}

const HEAD = 'PUT / HTTP/1.1\r\nHost: localhost\r\n';
const FIRST = `${HEAD}Content-Length: 5\r\n\r\n`;
const NEXT = `${HEAD}Content-Length: 4\r\n\r\nnext`;

const PAUSES = [
  { when: 'at once', pause: async () => undefined, atOnce: false },
  { when: 'later', pause: () => setTimeout(20), atOnce: false },
  { when: 'at once, or in pieces,', pause: async () => undefined, atOnce: true },
  { when: 'later at once, or in pieces,', pause: () => setTimeout(20), atOnce: true },
];

test.each(
  PAUSES.flatMap((one) => [
    { ...one, how: 'with its header', packets: [`${FIRST}whole`] },
    { ...one, how: 'after its header', packets: [FIRST, 'whole'] },
    { ...one, how: 'in two pieces', packets: [`${FIRST}wh`, 'ole'] },
    {
      ...one,
      how: 'in a chunk',
      packets: [`${HEAD}Transfer-Encoding: chunked\r\n\r\n5\r\nwhole\r\n0\r\n\r\n`],
    },
    { ...one, how: 'together with the next request', packets: [`${FIRST}whole${NEXT}`] },
  ]),
)('a body that comes $how and is read $when is read whole, and the connection is used again', async (row) => {
  const { port } = await echoing(row.pause, row.atOnce);
  const connection = connectRaw(port);
  for (const packet of row.packets) {
    connection.send(packet);
    await setTimeout(10);
  }
  await connection.until('[whole]');
  if (row.packets.at(-1)?.endsWith(NEXT) !== true) connection.send(NEXT);
  const answers = await connection.until('[next]');
  expect(answers.match(/HTTP\/1\.1 200 /g)).toHaveLength(2);
  connection.socket.destroy();
});

test('a body that comes with its header before 100 Continue is read whole', async () => {
  const { port } = await echoing(async () => undefined);
  const connection = connectRaw(port, `${HEAD}Expect: 100-continue\r\nContent-Length: 5\r\n\r\nwhole`);
  expect(await connection.until('[whole]')).toContain('HTTP/1.1 200 ');
  connection.socket.destroy();
});

test('a connection that breaks after a short body does not hold up the shutdown', async () => {
  let begin = (): void => undefined;
  const begun = new Promise<void>((resolve) => {
    begin = resolve;
  });
  const { port, close } = await echoing(async () => begin());
  const connection = connectRaw(port, `${FIRST}whole`);
  await begun;
  connection.socket.resetAndDestroy();
  await close(new AbortController().signal);
});
