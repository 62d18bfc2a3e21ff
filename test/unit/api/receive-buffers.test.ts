import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { connect as connectTls, createServer as createTlsServer } from 'node:tls';
import { afterEach, expect, test } from 'vitest';
import { Http } from '../../../src/api/http.ts';
import { ReceiveBuffers } from '../../../src/api/http-answer.ts';
import { pseudoRandomBytes } from '../../support/bytes.ts';
import { makeCertificate } from '../../support/certificate.ts';

const BYTES = pseudoRandomBytes(5_000_000, 3);

const turn = () => new Promise((resolve) => setImmediate(resolve));

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/** Starts `server`, which calls `serve` when a client has sent something. Returns its port. */
async function listening(server: Server, event: string, serve: (socket: Socket) => void): Promise<number> {
  server.on(event, (socket: Socket) => {
    socket.on('error', () => {});
    socket.once('data', () => serve(socket));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  closers.push(() => once(server.close(), 'close'));
  return (server.address() as AddressInfo).port;
}

/**
 * Reads all that `socket` brings, in the way of undici: it copies each piece at once, now and then puts a part back, and
 * then leaves the stream alone for some turns.
 */
async function readAll(socket: Socket): Promise<{ bytes: Buffer; memories: number }> {
  const pieces: Buffer[] = [];
  const memories = new Set<ArrayBufferLike>();
  let isPaused = false;
  const readMore = () => {
    for (let piece = isPaused ? null : socket.read(); piece; piece = isPaused ? null : socket.read()) {
      memories.add(piece.buffer);
      const isPut = pieces.length % 50 === 49;
      pieces.push(Buffer.from(isPut ? piece.subarray(0, piece.length / 2) : piece));
      if (!isPut) continue;
      socket.unshift(piece.subarray(piece.length / 2));
      isPaused = true;
      void turn()
        .then(turn)
        .then(turn)
        .then(() => {
          isPaused = false;
          readMore();
        });
    }
  };
  socket.on('readable', readMore);
  await once(socket, 'end');
  return { bytes: Buffer.concat(pieces), memories: memories.size };
}

test('a connection that receives into reused memory brings the bytes that were sent', async () => {
  const onread = new ReceiveBuffers(64 * 1024);
  const port = await listening(createServer(), 'connection', (client) => client.end(BYTES));
  const socket = connect({ port, host: '127.0.0.1', onread });
  onread.socket = socket;
  socket.write('?');
  const { bytes, memories } = await readAll(socket);
  expect(bytes.equals(BYTES)).toBe(true);
  expect(memories).toBeLessThan(BYTES.length / 65_536 / 2);
});

test('a TLS connection that receives into reused memory brings the bytes that were sent', async () => {
  const { key, cert, remove } = await makeCertificate(['localhost'], '127.0.0.1');
  closers.push(remove);
  const onread = new ReceiveBuffers(64 * 1024);
  const port = await listening(createTlsServer({ key, cert }), 'secureConnection', (client) =>
    client.end(BYTES),
  );
  // The types do not know that TLS takes `onread` too.
  const options = { port, host: '127.0.0.1', servername: 'localhost', ca: cert, onread };
  const socket = connectTls(options);
  onread.socket = socket;
  socket.write('?');
  const { bytes, memories } = await readAll(socket);
  expect(bytes.equals(BYTES)).toBe(true);
  expect(memories).toBeLessThan(BYTES.length / 16_384 / 2);
});

test('an answer comes unchanged to a reader that is slower than its connection', async () => {
  const head = `HTTP/1.1 200 OK\r\ncontent-length: ${BYTES.length}\r\n\r\n`;
  const port = await listening(createServer(), 'connection', (client) => {
    client.write(head);
    client.write(BYTES);
  });
  const url = `http://127.0.0.1:${port}`;
  const http = new Http({ base: url, content: url, notify: url });
  closers.push(() => http.close());
  const answer = await http.open({ host: 'base', path: '/', headers: {} }, new AbortController().signal);
  if (!('read' in answer)) throw new Error('not a stream');
  const into = Buffer.alloc(100_000);
  const pieces: Buffer[] = [];
  for (let count = await answer.read(into); count > 0; count = await answer.read(into)) {
    pieces.push(Buffer.from(into.subarray(0, count)));
    for (let turns = 0; turns < pieces.length % 20; turns++) await turn();
  }
  expect(Buffer.concat(pieces).equals(BYTES)).toBe(true);
});

test.each([10, 20_000])(
  'headers of %i bytes that come in pieces of their own are the ones that were sent',
  async (valueBytes) => {
    const headers = Array.from({ length: 6 }, (_, index) => [
      `x-header-${index}`,
      `${index}`.repeat(valueBytes),
    ]);
    const lines = ['HTTP/1.1 200 OK', ...headers.map((header) => header.join(': ')), 'content-length: 2', ''];
    const port = await listening(createServer(), 'connection', (client) => {
      client.setNoDelay(true);
      void lines
        .reduce(async (sent, line) => {
          await sent;
          client.write(`${line}\r\n`);
          for (let turns = 0; turns < 5; turns++) await turn();
        }, Promise.resolve())
        .then(() => client.end('{}'));
    });
    const url = `http://127.0.0.1:${port}`;
    const http = new Http({ base: url, content: url, notify: url });
    closers.push(() => http.close());
    const answer = await http.send({ host: 'base', path: '/', headers: {} }, new AbortController().signal);
    expect(headers.map(([name = '']) => [name, answer.header(name)])).toEqual(headers);
  },
);
