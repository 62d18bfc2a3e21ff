import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { openSpill, type Spill } from '../../../../src/drive/spool/spool.ts';
import { SpillBudget, SpillFile } from '../../../../src/drive/spool/spool-file.ts';
import { PatientBody } from '../../../../src/drive/spool/spooled-body.ts';
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
const open = (bytesMax?: number) => openSpill({ directory, clock, log, ...(bytesMax && { bytesMax }) });

beforeEach(() => {
  parent = mkdtempSync(join(tmpdir(), 'davgate-spill-'));
  directory = join(parent, 'spill');
  clock = new ManualClock();
  warnings.length = 0;
});
afterEach(() => rmSync(parent, { recursive: true, force: true }));

/** A sender of `bytes`, and how much was taken of it. */
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

/** Lets seconds pass, and then what they set in motion, which waits for a disk. */
async function pass(seconds: number, isDone?: () => boolean): Promise<void> {
  await clock.untilSleeping();
  await clock.advance(seconds * 1000);
  for (let turn = 0; isDone ? !isDone() : turn < 2_000; turn += 1)
    await new Promise((resolve) => setImmediate(resolve));
}

async function rest(body: PatientBody): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for (let step = await body.next(); !step.done; step = await body.next()) chunks.push(step.value);
  return Buffer.concat(chunks);
}

/** Guards a sender and reads the first piece of it. */
async function begun(spill: Spill, bytes: Uint8Array, failure?: Error) {
  const sender = senderOf(bytes, failure);
  const body = spill.guard(sender.body);
  const first = await body.next();
  if (first.done) throw new Error('no bytes');
  return { sender, body, all: async () => Buffer.concat([first.value, await rest(body)]) };
}

describe('a body that nobody reads', () => {
  test('is taken on, slowly, and comes back whole and in order', async () => {
    const bytes = pseudoRandomBytes(20 * MIB + 5, 1);
    const { sender, body, all } = await begun(await open(), bytes);
    let before = sender.takenBytes;
    for (let look = 1; look <= 4; look += 1) {
      const wanted = before + 4 * MIB;
      // The first look finds that something was read since the last.
      await pass(look === 1 ? 10 : 5, () => sender.takenBytes >= wanted);
      expect(sender.takenBytes).toBe(wanted);
      before = sender.takenBytes;
    }
    expect(readdirSync(directory)).toHaveLength(1);
    expect((await all()).equals(bytes)).toBe(true);
    await body.close();
    expect(readdirSync(directory)).toEqual([]);
  });

  test('from its very start is taken on too', async () => {
    const sender = senderOf(pseudoRandomBytes(MIB, 2));
    const body = (await open()).guard(sender.body);
    await pass(5, () => sender.takenBytes === MIB);
    expect(sender.takenBytes).toBe(MIB);
    expect((await rest(body)).equals(pseudoRandomBytes(MIB, 2))).toBe(true);
    await body.close();
  });

  test('again and again, between being read, comes back whole', async () => {
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

  test('fails for its reader after all that came before the failure', async () => {
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

test('a body that is read as it comes costs no disk', async () => {
  const bytes = pseudoRandomBytes(5 * MIB, 5);
  const { body, all } = await begun(await open(), bytes);
  expect((await all()).equals(bytes)).toBe(true);
  expect(readdirSync(directory)).toEqual([]);
  await body.close();
  expect(clock.sleeping).toBe(0);
});

describe('without room', () => {
  test('the sender waits, and nothing is lost', async () => {
    const bytes = pseudoRandomBytes(20 * MIB, 6);
    const { body, sender, all } = await begun(await open(2 * MIB), bytes);
    // One piece more than there was room for is in memory.
    const wanted = 2 * MIB + 2 * PIECE_BYTES;
    await pass(10, () => sender.takenBytes >= wanted);
    for (let look = 0; look < 3; look += 1) await pass(10);
    expect(sender.takenBytes).toBe(wanted);
    expect((await all()).equals(bytes)).toBe(true);
    await body.close();
  });

  test('that another body gives back, it goes on', async () => {
    const spill = await open(2 * MIB);
    const one = await begun(spill, pseudoRandomBytes(8 * MIB, 7));
    await pass(10, () => one.sender.takenBytes > 2 * MIB + PIECE_BYTES);
    const two = await begun(spill, pseudoRandomBytes(8 * MIB, 8));
    await pass(10, () => two.sender.takenBytes > PIECE_BYTES);
    await pass(10);
    expect(two.sender.takenBytes).toBe(2 * PIECE_BYTES);
    await one.body.close();
    // What is kept in memory has to be read first.
    await two.body.next();
    await pass(10, () => two.sender.takenBytes > MIB);
    expect(two.sender.takenBytes).toBeGreaterThan(MIB);
    await two.body.close();
  });

  test('as the disk fails, the sender waits, nothing is lost, and the log tells it once', async () => {
    writeFileSync(directory, 'a file where the directory should be');
    const spill = await open();
    rmSync(directory, { force: true, recursive: true });
    warnings.length = 0;
    const bytes = pseudoRandomBytes(3 * MIB, 9);
    const { body, sender, all } = await begun(spill, bytes);
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

test('on a disk that is full in the middle, the sender waits and nothing is lost', async () => {
  class FullFile extends SpillFile {
    #leftBytes = MIB;
    override async write(bytes: Uint8Array): Promise<boolean> {
      this.#leftBytes -= bytes.length;
      if (this.#leftBytes < 0) throw Object.assign(new Error('ENOSPC: injected'), { code: 'ENOSPC' });
      return super.write(bytes);
    }
  }
  const bytes = pseudoRandomBytes(8 * MIB, 10);
  const sender = senderOf(bytes);
  const file = new FullFile(join(parent, 'body'), new SpillBudget(100 * MIB));
  const body = new PatientBody(sender.body, file, { clock, log });
  await pass(5, () => sender.takenBytes > MIB);
  await pass(5);
  expect(sender.takenBytes).toBe(MIB + PIECE_BYTES);
  expect((await rest(body)).equals(bytes)).toBe(true);
  expect(warnings).toMatchObject([[expect.anything(), { reason: expect.stringContaining('ENOSPC') }]]);
  await body.close();
  expect(readdirSync(parent)).toEqual([]);
});

test('what a killed process left behind is removed at the start', async () => {
  await open();
  writeFileSync(join(directory, 'left'), 'bytes');
  await open();
  expect(existsSync(directory)).toBe(true);
  expect(readdirSync(directory)).toEqual([]);
});
