import { readdirSync, statSync } from 'node:fs';
import { type ClientRequest, request } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { UPLOAD_LIMITS } from '../../src/api/write/uploader.ts';
import { contentHashOf } from '../../src/util/content-hash.ts';
import { pseudoRandomBytes } from '../support/bytes.ts';
import { startTestGateway, type TestGateway } from '../support/gateway.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { rpc } from '../support/service-client.ts';

const MIB = 1024 * 1024;
/** Maximum size of the parts of one upload that are in flight, in bytes. */
const SENT_BYTES = UPLOAD_LIMITS.inFlightMax * UPLOAD_LIMITS.partBytes;
/** Time the service takes for each part, in ms. Finder gives up after 30 s without progress. */
const PART_MS = 40_000;
const PIECE_BYTES = 256 * 1024;
/** Longer than the parts, the 4 MiB spooled in each 5 s of `PART_MS`, and a connection's buffers together. */
const BODY = pseudoRandomBytes(100 * MIB, 1);

let clock: ManualClock;
let service: TestService;
let gateway: TestGateway;

beforeEach(async () => {
  clock = new ManualClock();
  service = await startTestService({ clock });
  gateway = await startTestGateway({ service, clock });
});
afterEach(async () => {
  service.service.setFaults({});
  // Calls that a fault delays wait for the clock.
  await clock.during(gateway.close());
  await clock.during(service.close());
});

/** Waits in real time, because sockets and disks do not follow the clock. */
async function until(isDone: () => boolean): Promise<void> {
  while (!isDone()) await pause(5);
}

function spooledBytes(): number {
  const sizes = readdirSync(gateway.spoolDirectory).map(
    (name) => statSync(join(gateway.spoolDirectory, name)).size,
  );
  return sizes.reduce((sum, size) => sum + size, 0);
}

/** Sends a PUT as Finder does, in chunks and with the length in a header of its own; counts the bytes handed over. */
function startPut(path: string) {
  const sent = { bytes: 0, answer: '', request: undefined as ClientRequest | undefined };
  const outgoing = request(`${gateway.url}${path}`, {
    method: 'PUT',
    headers: { 'transfer-encoding': 'chunked', 'x-expected-entity-length': String(BODY.length) },
  });
  outgoing.on('error', () => {});
  outgoing.on('response', (response) => {
    void text(response).then((answer) => {
      sent.answer = `${response.statusCode} ${answer}`;
    });
  });
  const write = () => {
    if (sent.bytes >= BODY.length) return void outgoing.end();
    const piece = BODY.subarray(sent.bytes, sent.bytes + PIECE_BYTES);
    outgoing.write(piece, (error) => {
      if (error) return;
      sent.bytes += piece.length;
      write();
    });
  };
  write();
  sent.request = outgoing;
  return sent;
}

const spoolFiles = () => readdirSync(gateway.spoolDirectory).length;

/**
 * Advances the clock by the 5 s after which an unread body has another 4 MiB spooled, and waits in real time until that
 * is done or the file is gone: at most a second, because the body may have been read meanwhile, or without a limit.
 */
async function untilSpooled({ isCertain = false } = {}): Promise<void> {
  const before = spooledBytes();
  const isDone = () => (spoolFiles() === 0 ? before > 0 : spooledBytes() >= before + 4 * MIB);
  await clock.advance(5_000);
  for (let waitedMs = 0; !isDone() && (isCertain || waitedMs < 1_000); waitedMs += 5) await pause(5);
}

test('a chunked PUT to a slow service makes progress at least every 15 s, and is stored whole', async () => {
  service.service.setFaults({ 'latency-write-ms': PART_MS });
  const sent = startPut('/big');
  await until(() => sent.bytes > SENT_BYTES);
  let stillMs = 0;
  for (let passedMs = 0; passedMs < PART_MS - 5_000; passedMs += 5_000) {
    const before = spooledBytes();
    await untilSpooled({ isCertain: stillMs === 10_000 });
    stillMs = spooledBytes() > before ? 0 : stillMs + 5_000;
  }
  // Beside the parts under way, at least 4 MiB in each 15 s.
  expect(sent.bytes).toBeGreaterThanOrEqual(SENT_BYTES + 8 * MIB);
  expect(spoolFiles()).toBe(1);
  service.service.setFaults({});
  await clock.advance(PART_MS);
  await until(() => sent.answer !== '');
  const { warnings, errors } = gateway;
  expect({ answer: sent.answer, warnings, errors }).toEqual({ answer: '201 ', warnings: [], errors: [] });
  const { json } = await rpc(service, 'files/get_metadata', { path: '/big' });
  expect(json).toMatchObject({ size: BODY.length, content_hash: contentHashOf(BODY) });
  expect(spoolFiles()).toBe(0);
});

test('a PUT whose client disconnects while it is spooled leaves no spool file and commits nothing', async () => {
  service.service.setFaults({ 'latency-write-ms': PART_MS });
  const sent = startPut('/big');
  await until(() => sent.bytes > SENT_BYTES);
  while (spoolFiles() === 0) await untilSpooled();
  expect(spoolFiles()).toBe(1);
  sent.request?.destroy();
  // The gateway sees the end of the connection after the bytes that were sent before.
  while (spoolFiles() > 0) await untilSpooled();
  service.service.setFaults({});
  await clock.advance(PART_MS);
  expect(await rpc(service, 'files/get_metadata', { path: '/big' })).toMatchObject({ status: 409 });
});
