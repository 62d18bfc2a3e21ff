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

/** A service that takes a minute for each part, and a client that gives up when nothing is taken for 30 s. */
const MIB = 1024 * 1024;
/** Those under way. */
const SENT_BYTES = UPLOAD_LIMITS.inFlightMax * UPLOAD_LIMITS.partBytes;
/** And the one being gathered. */
const PARTS_BYTES = SENT_BYTES + UPLOAD_LIMITS.partBytes;
const PIECE_BYTES = 256 * 1024;
const BODY = pseudoRandomBytes(120 * MIB, 1);

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
  // What sleeps because of the faults is late by minutes.
  await clock.during(gateway.close());
  await clock.during(service.close());
});

/** Lets what time set in motion come to its end, over sockets and disks; for no longer than `seconds` of a busy machine. */
async function settle(isDone: () => boolean, seconds = 60): Promise<void> {
  for (const endMs = Date.now() + seconds * 1000; !isDone() && Date.now() < endMs; ) await pause(5);
}

function spooledBytes(): number {
  const sizes = readdirSync(gateway.spoolDirectory).map(
    (name) => statSync(join(gateway.spoolDirectory, name)).size,
  );
  return sizes.reduce((sum, size) => sum + size, 0);
}

/** Finder's copy: chunks, with the length said beforehand; how much of it has been handed over. */
function copy(path: string) {
  const sent = { bytes: 0, answer: '', request: undefined as ClientRequest | undefined };
  const outgoing = request(`${gateway.url}${path}`, {
    method: 'PUT',
    headers: { 'transfer-encoding': 'chunked', 'x-expected-entity-length': String(BODY.length) },
  });
  outgoing.on('error', () => {});
  outgoing.on('response', (response) => {
    void text(response).then((body) => {
      sent.answer = `${response.statusCode} ${body}`;
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

test('a PUT goes on being taken while the service throttles, and is stored whole', async () => {
  service.service.setFaults({ 'latency-write-ms': 60_000 });
  const sent = copy('/big');
  await settle(() => sent.bytes > SENT_BYTES);
  let stillSeconds = 0;
  for (let seconds = 0; seconds < 55; seconds += 5) {
    const before = spooledBytes();
    await clock.advance(5_000);
    await settle(() => spooledBytes() >= before + 4 * MIB, 5);
    stillSeconds = spooledBytes() > before ? 0 : stillSeconds + 5;
    expect([seconds, stillSeconds < 20]).toEqual([seconds, true]);
  }
  // Far more than the parts that may be in memory.
  await settle(() => sent.bytes > PARTS_BYTES + 16 * MIB);
  expect(sent.bytes).toBeGreaterThan(PARTS_BYTES + 16 * MIB);
  expect(readdirSync(gateway.spoolDirectory)).toHaveLength(1);
  service.service.setFaults({});
  await clock.advance(60_000);
  await settle(() => sent.answer !== '');
  const { warnings, errors } = gateway;
  expect({ answer: sent.answer, warnings, errors }).toEqual({ answer: '201 ', warnings: [], errors: [] });
  const { json } = await rpc(service, 'files/get_metadata', { path: '/big' });
  expect(json).toMatchObject({ size: BODY.length, content_hash: contentHashOf(BODY) });
  expect(readdirSync(gateway.spoolDirectory)).toEqual([]);
});

test('a PUT whose client leaves while it is spooled leaves nothing on the disk and commits nothing', async () => {
  service.service.setFaults({ 'latency-write-ms': 60_000 });
  const sent = copy('/big');
  await settle(() => sent.bytes > SENT_BYTES);
  for (let look = 0; look < 3; look += 1) {
    await clock.advance(5_000);
    await settle(() => readdirSync(gateway.spoolDirectory).length > 0, 10);
  }
  expect(readdirSync(gateway.spoolDirectory)).toHaveLength(1);
  sent.request?.destroy();
  // That it has gone is seen when what it had sent before is taken.
  for (let look = 0; look < 5; look += 1) {
    await clock.advance(5_000);
    await settle(() => readdirSync(gateway.spoolDirectory).length === 0, 10);
  }
  expect(readdirSync(gateway.spoolDirectory)).toEqual([]);
  service.service.setFaults({});
  await clock.advance(60_000);
  expect(await rpc(service, 'files/get_metadata', { path: '/big' })).toMatchObject({ status: 409 });
});
