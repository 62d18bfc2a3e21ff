import { Readable } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { HttpBody } from '../../../src/api/http-answer.ts';
import { systemClock } from '../../../src/util/clock.ts';
import { pseudoRandomBytes } from '../../support/bytes.ts';

const LIMITS = { clock: systemClock, silenceMs: 60_000 };
const BYTES = pseudoRandomBytes(3_000_000, 1);

const turn = () => new Promise((resolve) => setImmediate(resolve));

/** Returns a body that pushes `pieceBytes` at a time, and waits for `turns` turns of the event loop after each piece. */
function bodyOf(pieceBytes: number, turns: number): Readable {
  return Readable.from(
    (async function* () {
      for (let at = 0; at < BYTES.length; at += pieceBytes) {
        yield BYTES.subarray(at, at + pieceBytes);
        for (let waited = 0; waited < turns; waited++) await turn();
      }
    })(),
    { objectMode: false },
  );
}

/** Returns the body of an answer whose connection brings the pieces of `source`. */
function bodyFrom(source: Readable): HttpBody {
  const connection = {
    pause: () => void source.pause(),
    resume: () => void source.resume(),
    abort: (reason: Error) => void source.destroy(reason),
  };
  const body = new HttpBody(connection, LIMITS);
  source.on('data', (bytes: Buffer) => body.add(bytes));
  source.on('end', () => body.end({}));
  source.on('error', (failure) => body.end({ failure }));
  return body;
}

describe('reading a body', () => {
  for (const pieceBytes of [1_000, 16_384, 700_000])
    for (const turns of [0, 1, 3])
      for (const intoBytes of [5_000, 4_194_304])
        for (const readerTurns of [0, 2])
          test(`pieces of ${pieceBytes} bytes every ${turns} turns come whole into buffers of ${intoBytes} bytes every ${readerTurns} turns`, async () => {
            const body = bodyFrom(bodyOf(pieceBytes, turns));
            const into = Buffer.alloc(intoBytes);
            const read: Buffer[] = [];
            for (let count = await body.read(into); count > 0; count = await body.read(into)) {
              read.push(Buffer.from(into.subarray(0, count)));
              for (let waited = 0; waited < readerTurns; waited++) await turn();
            }
            expect(Buffer.concat(read).equals(BYTES)).toBe(true);
            expect(await body.read(into)).toBe(0);
          });

  test('pieces that come in one turn after the other are read together, up to 256 KiB', async () => {
    const body = bodyFrom(bodyOf(16_384, 0));
    const into = Buffer.alloc(4_194_304);
    let reads = 0;
    for (let count = await body.read(into); count > 0; count = await body.read(into)) reads++;
    expect(reads).toBeLessThan(BYTES.length / 16_384 / 4);
  });

  test('bytes that came before a failure are read before it is thrown', async () => {
    const failure = new Error('the connection was reset');
    const source = new Readable({ read() {} });
    const body = bodyFrom(source);
    source.push(Buffer.from('text'));
    await turn();
    source.destroy(failure);
    const into = Buffer.alloc(10);
    expect(await body.read(into)).toBe(4);
    await expect(body.read(into)).rejects.toBe(failure);
  });

  test('a body that is cancelled before its end fails', async () => {
    const body = bodyFrom(new Readable({ read() {} }));
    const reading = body.read(Buffer.alloc(10));
    body.cancel();
    await expect(reading).rejects.toThrow('closed before its end');
  });

  test('memory of a piece may be reused as soon as the piece was added', async () => {
    const body = new HttpBody({ pause() {}, resume() {}, abort() {} }, LIMITS);
    const memory = Buffer.from('one ');
    const into = Buffer.alloc(20);
    const reading = body.read(into);
    body.add(memory);
    memory.write('two ');
    expect(into.toString('utf8', 0, await reading)).toBe('one ');
    body.add(memory);
    memory.write('----');
    body.end({});
    expect((await body.readRest(10)).toString()).toBe('two ');
  });

  test('the rest of a body is read whole, and refused when it is longer than allowed', async () => {
    expect((await bodyFrom(bodyOf(16_384, 1)).readRest(BYTES.length)).equals(BYTES)).toBe(true);
    await expect(bodyFrom(bodyOf(16_384, 1)).readRest(BYTES.length - 1)).rejects.toThrow('over');
  });

  test('a sender is paused while more than half a MiB has not been read', async () => {
    let pushedBytes = 0;
    const source = new Readable({
      highWaterMark: 1,
      read() {
        pushedBytes += 10_000;
        setImmediate(() => this.push(Buffer.alloc(10_000)));
      },
    });
    const body = bodyFrom(source);
    for (let waited = 0; waited < 1_000; waited++) await turn();
    expect(pushedBytes).toBeLessThan(600_000);
    await body.read(Buffer.alloc(300_000));
    for (let waited = 0; waited < 1_000; waited++) await turn();
    expect(pushedBytes).toBeGreaterThan(700_000);
    body.cancel();
  });
});
