import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { openSpool, type Spool } from '../../../../src/drive/spool/spool.ts';
import { SpoolBudget, SpoolFile } from '../../../../src/drive/spool/spool-file.ts';
import { SpooledBody } from '../../../../src/drive/spool/spooled-body.ts';
import { silentLog } from '../../../../src/util/log.ts';
import { pseudoRandomBytes } from '../../../support/bytes.ts';
import { ManualClock } from '../../../support/manual-clock.ts';

const MIB = 1024 * 1024;
const PIECE_BYTES = 64 * 1024;

let parent: string;
let directory: string;
let clock: ManualClock;
const warnings: unknown[] = [];
const log = { ...silentLog, warn: (...event: unknown[]) => void warnings.push(event) };
const open = (bytesMax?: number) => openSpool({ directory, clock, log, ...(bytesMax && { bytesMax }) });

beforeEach(() => {
  parent = mkdtempSync(join(tmpdir(), 'davgate-spool-'));
  directory = join(parent, 'spool');
  clock = new ManualClock();
  warnings.length = 0;
});
afterEach(() => rmSync(parent, { recursive: true, force: true }));

/** Returns a body of `bytes` and how many of them were taken. */
function senderOf(bytes: Uint8Array, failure?: Error) {
  const sender = { takenBytes: 0, isLeft: false, body: pieces() };
  async function* pieces() {
    try {
      for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
        const piece = bytes.subarray(at, at + PIECE_BYTES);
        sender.takenBytes += piece.length;
        yield piece;
      }
      if (failure) throw failure;
    } finally {
      sender.isLeft = true;
    }
  }
  return sender;
}

/** Advances the clock, then turns the event loop until `isDone` or, without it, long enough for disk writes. */
async function pass(seconds: number, isDone?: () => boolean): Promise<void> {
  await clock.untilSleeping();
  await clock.advance(seconds * 1000);
  for (let turn = 0; isDone ? !isDone() : turn < 2_000; turn += 1)
    await new Promise((resolve) => setImmediate(resolve));
}

async function rest(body: SpooledBody): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for (let step = await body.next(); !step.done; step = await body.next()) chunks.push(step.value);
  return Buffer.concat(chunks);
}

/** Spools a sender and reads the first piece of it. */
async function begun(spool: Spool, bytes: Uint8Array, failure?: Error) {
  const sender = senderOf(bytes, failure);
  const body = spool.attach(sender.body);
  const first = await body.next();
  if (first.done) throw new Error('no bytes');
  return { sender, body, all: async () => Buffer.concat([first.value, await rest(body)]) };
}

describe('spooling', () => {
  test('a body that nobody reads is spooled 4 MiB at a time, and read back whole and in order', async () => {
    const bytes = pseudoRandomBytes(20 * MIB + 5, 1);
    const { sender, body, all } = await begun(await open(), bytes);
    let before = sender.takenBytes;
    for (let look = 1; look <= 4; look += 1) {
      const wanted = before + 4 * MIB;
      // The first check finds the read of the first piece, so it spools nothing.
      await pass(look === 1 ? 10 : 5, () => sender.takenBytes >= wanted);
      expect(sender.takenBytes).toBe(wanted);
      before = sender.takenBytes;
    }
    expect(readdirSync(directory)).toHaveLength(1);
    expect((await all()).equals(bytes)).toBe(true);
    await body.close();
    expect(readdirSync(directory)).toEqual([]);
  });

  test('a body of which nothing was read is spooled from its start', async () => {
    const sender = senderOf(pseudoRandomBytes(MIB, 2));
    const body = (await open()).attach(sender.body);
    await pass(5, () => sender.takenBytes === MIB);
    expect(sender.takenBytes).toBe(MIB);
    expect((await rest(body)).equals(pseudoRandomBytes(MIB, 2))).toBe(true);
    await body.close();
  });

  test('a body that is spooled again and again between reads is read back whole', async () => {
    const bytes = pseudoRandomBytes(40 * MIB, 3);
    const { body, sender } = await begun(await open(), bytes);
    const chunks: Uint8Array[] = [bytes.subarray(0, PIECE_BYTES)];
    for (let round = 0; round < 6; round += 1) {
      const wanted = sender.takenBytes + 4 * MIB;
      await pass(10, () => sender.takenBytes >= wanted);
      for (let count = 0; count < 10 + 7 * round; count += 1) {
        const step = await body.next();
        if (!step.done) chunks.push(step.value);
      }
    }
    chunks.push(await rest(body));
    expect(Buffer.concat(chunks).equals(bytes)).toBe(true);
    await body.close();
  });

  test('a spooled body whose sender fails yields all bytes before the failure', async () => {
    const bytes = pseudoRandomBytes(MIB, 4);
    const gone = new Error('the sender has gone');
    const { body, sender } = await begun(await open(), bytes, gone);
    await pass(10, () => sender.isLeft);
    let readBytes = PIECE_BYTES;
    const reading = async () => {
      for (let step = await body.next(); !step.done; step = await body.next()) readBytes += step.value.length;
    };
    await expect(reading()).rejects.toBe(gone);
    expect(readBytes).toBe(MIB);
    await body.close();
  });
});

test('a body that is read as it comes is not spooled', async () => {
  const bytes = pseudoRandomBytes(5 * MIB, 5);
  const { body, all } = await begun(await open(), bytes);
  expect((await all()).equals(bytes)).toBe(true);
  expect(readdirSync(directory)).toEqual([]);
  await body.close();
  expect(clock.sleeping).toBe(0);
});

describe('no room', () => {
  test('a sender waits when the spool is full, and no byte is lost', async () => {
    const bytes = pseudoRandomBytes(20 * MIB, 6);
    const { body, sender, all } = await begun(await open(2 * MIB), bytes);
    // One piece more than the spool has room for is held in memory.
    const wanted = 2 * MIB + 2 * PIECE_BYTES;
    await pass(10, () => sender.takenBytes >= wanted);
    for (let look = 0; look < 3; look += 1) await pass(10);
    expect(sender.takenBytes).toBe(wanted);
    expect((await all()).equals(bytes)).toBe(true);
    await body.close();
  });

  test('a body is spooled again when another body has freed its room', async () => {
    const spool = await open(2 * MIB);
    const one = await begun(spool, pseudoRandomBytes(8 * MIB, 7));
    await pass(10, () => one.sender.takenBytes > 2 * MIB + PIECE_BYTES);
    const two = await begun(spool, pseudoRandomBytes(8 * MIB, 8));
    await pass(10, () => two.sender.takenBytes > PIECE_BYTES);
    await pass(10);
    expect(two.sender.takenBytes).toBe(2 * PIECE_BYTES);
    await one.body.close();
    // The piece in memory has to be read before spooling continues.
    await two.body.next();
    await pass(10, () => two.sender.takenBytes > MIB);
    expect(two.sender.takenBytes).toBeGreaterThan(MIB);
    await two.body.close();
  });

  test('a sender waits when the disk fails, no byte is lost, and the failure is logged once', async () => {
    writeFileSync(directory, 'a file where the directory should be');
    const spool = await open();
    rmSync(directory, { force: true, recursive: true });
    warnings.length = 0;
    const bytes = pseudoRandomBytes(3 * MIB, 9);
    const { body, sender, all } = await begun(spool, bytes);
    for (let look = 0; look < 3; look += 1) {
      await pass(10);
      await body.next();
    }
    expect(sender.takenBytes).toBeLessThan(MIB);
    const left = await all();
    expect(left.subarray(PIECE_BYTES).equals(bytes.subarray(bytes.length - left.length + PIECE_BYTES))).toBe(
      true,
    );
    expect(warnings).toHaveLength(1);
    await body.close();
  });
});

test('a sender waits when the disk fills up in the middle of a body, and no byte is lost', async () => {
  class FullFile extends SpoolFile {
    #leftBytes = MIB;
    override async write(bytes: Uint8Array): Promise<boolean> {
      this.#leftBytes -= bytes.length;
      if (this.#leftBytes < 0) throw Object.assign(new Error('ENOSPC: injected'), { code: 'ENOSPC' });
      return super.write(bytes);
    }
  }
  const bytes = pseudoRandomBytes(8 * MIB, 10);
  const sender = senderOf(bytes);
  const file = new FullFile(join(parent, 'body'), new SpoolBudget(100 * MIB));
  const body = new SpooledBody(sender.body, file, { clock, log });
  await pass(5, () => sender.takenBytes > MIB);
  await pass(5);
  expect(sender.takenBytes).toBe(MIB + PIECE_BYTES);
  expect((await rest(body)).equals(bytes)).toBe(true);
  expect(warnings).toMatchObject([[expect.anything(), { reason: expect.stringContaining('ENOSPC') }]]);
  await body.close();
  expect(readdirSync(parent)).toEqual([]);
});

test('files that a killed process left in the spool are removed at the start', async () => {
  await open();
  writeFileSync(join(directory, 'left'), 'bytes');
  await open();
  expect(existsSync(directory)).toBe(true);
  expect(readdirSync(directory)).toEqual([]);
});

test("the folder 'spill' of an earlier version is removed at the start, and the other folders stay", async () => {
  for (const name of ['spill', 'state']) {
    mkdirSync(join(parent, name));
    writeFileSync(join(parent, name, 'left'), 'bytes');
  }
  await open();
  expect(readdirSync(parent).sort()).toEqual(['spool', 'state']);
  expect(readdirSync(join(parent, 'state'))).toEqual(['left']);
});
