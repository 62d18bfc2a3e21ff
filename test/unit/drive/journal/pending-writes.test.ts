import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { FileEntry } from '../../../../src/drive/files.ts';
import { join as joinPath, ROOT } from '../../../../src/util/path.ts';
import { joined } from '../../../support/byte-source.ts';
import { faultOf } from '../../../support/fault-of.ts';
import { MemoryDrive, seen, turn } from '../../../support/memory-drive.ts';
import { at, type MemoryRemote } from '../../../support/memory-remote.ts';

let drive: MemoryDrive;
let remote: MemoryRemote;

beforeEach(async () => {
  drive = await MemoryDrive.open(undefined, { writeBack: true });
  ({ remote } = drive);
});

afterEach(() => drive.close());

describe('pending writes', () => {
  test('a pending write is visible to every client at once, and nothing of it changes when it lands', async () => {
    const gate = remote.holdNext('write', 'begin');
    const written = await drive.put(at('/a.txt'), '0123456789');
    expect(remote.paths).toEqual([]);
    expect(drive.files.depth()).toEqual({ files: 1, bytes: 10, lostFiles: 0 });
    expect(await drive.fileAt(at('/A.TXT'))).toEqual(written);
    expect((await drive.files.list(ROOT)).children).toEqual([written]);
    expect(await drive.text(at('/a.txt'))).toBe('0123456789');
    const part: Uint8Array[] = [];
    const { signal } = new AbortController();
    for await (const piece of drive.files.read(written, { start: 3, end: 6 }, signal)) part.push(piece);
    expect(Buffer.concat(part).toString()).toBe('345');
    gate.release();
    await drive.untilLanded();
    expect(remote.text(at('/a.txt'))).toBe('0123456789');
    const landed = await drive.fileAt(at('/a.txt'));
    expect(seen(landed)).toEqual(seen(written));
    expect((await drive.files.list(ROOT)).children.map((child) => seen(child as FileEntry))).toEqual([
      seen(written),
    ]);
    await drive.untilAlive();
    expect(seen(await drive.fileAt(at('/a.txt')))).toEqual(seen(written));
  });

  test('the first call for an acknowledged write is made after the turn in which it was acknowledged', async () => {
    await drive.put(at('/a'), 'x');
    for (let count = 0; count < 100; count++) await Promise.resolve();
    expect(remote.count('write')).toBe(0);
    await drive.untilLanded();
    expect(remote.count('write')).toBe(1);
  });

  test('an entry from before a write landed can still be read', async () => {
    const gate = remote.holdNext('write', 'begin');
    const before = await drive.put(at('/a'), 'text');
    gate.release();
    await drive.untilLanded();
    const bytes = await joined(drive.files.read(before, undefined, new AbortController().signal));
    expect(bytes.toString()).toBe('text');
  });

  test('a listing of an unchanged folder is the same object', async () => {
    await drive.put(at('/a'), 'x');
    await drive.untilLanded();
    const gate = remote.holdNext('write', 'begin');
    await drive.put(at('/b'), 'y');
    await gate.reached;
    expect(await drive.files.list(ROOT)).toBe(await drive.files.list(ROOT));
    gate.release();
    await drive.untilLanded();
    expect(await drive.files.list(ROOT)).toBe(await drive.files.list(ROOT));
  });

  test('the free space counts pending writes as landed', async () => {
    await drive.put(at('/a'), 'old');
    await drive.untilLanded();
    const before = await drive.files.freeSpace();
    const gate = remote.holdNext('write', 'begin');
    await drive.put(at('/a'), 'longer');
    await drive.put(at('/a'), 'longest');
    expect((await drive.files.freeSpace())?.usedBytes).toBe((before?.usedBytes ?? 0) + 4);
    gate.release();
    await drive.untilLanded();
    expect((await drive.files.freeSpace())?.usedBytes).toBe((before?.usedBytes ?? 0) + 4);
  });

  test('a write without room in the account is refused before it is acknowledged', async () => {
    remote.allocatedBytes = 100;
    const gate = remote.holdNext('write', 'begin');
    await drive.files.freeSpace();
    await drive.put(at('/a'), 'x'.repeat(60));
    expect(await faultOf(drive.put(at('/b'), 'x'.repeat(60)))).toBe('no-space');
    expect(await drive.files.stat(at('/b'))).toBeUndefined();
    gate.release();
    await drive.untilLanded();
  });

  test('many pending writes are given to the service at the same time', async () => {
    const gates = Array.from({ length: 20 }, () => remote.holdNext('write', 'begin'));
    await Promise.all(Array.from({ length: 100 }, (_, index) => drive.put(at(`/${index}`), `${index}`)));
    await Promise.all(gates.map(({ reached }) => reached));
    for (const { release } of gates) release();
    await drive.clock.during(drive.untilLanded());
    expect(remote.paths).toHaveLength(100);
  });
});

describe('several writes of one file', () => {
  test('a pending write that was superseded is not sent', async () => {
    const gate = remote.holdNext('write', 'begin');
    await drive.put(at('/other'), 'x');
    await gate.reached;
    await Promise.all([1, 2, 3, 4, 5].map((number) => drive.put(at('/a'), `version ${number}`)));
    gate.release();
    await drive.untilLanded();
    expect(remote.text(at('/a'))).toBe('version 5');
    // The first write may have been sent before the second arrived.
    const uploads = remote.calls.filter(({ call, path }) => call === 'write' && path === '/a');
    expect(uploads.length).toBeLessThanOrEqual(2);
  });

  test('writes that follow one being sent land in order, each on the one before', async () => {
    const gate = remote.holdNext('write', 'begin');
    const first = await drive.put(at('/a'), 'one');
    await gate.reached;
    const second = await drive.put(at('/a'), 'two', { if: 'rev', rev: first.rev });
    const third = await drive.put(at('/a'), 'three', { if: 'rev', rev: second.rev });
    expect(await drive.text(at('/a'))).toBe('three');
    gate.release();
    await drive.untilLanded();
    expect(remote.text(at('/a'))).toBe('three');
    expect(remote.paths).toEqual(['/a']);
    expect((await drive.fileAt(at('/a'))).rev).toBe(third.rev);
  });

  test('conditions of writes compare with the visible version, before and after it lands', async () => {
    const gate = remote.holdNext('write', 'begin');
    const first = await drive.put(at('/a'), 'one', { if: 'absent' });
    expect(await faultOf(drive.put(at('/a'), 'two', { if: 'absent' }))).toBe('changed');
    expect(await faultOf(drive.put(at('/a'), 'two', { if: 'rev', rev: 'another' }))).toBe('changed');
    gate.release();
    await drive.untilLanded();
    await drive.put(at('/a'), 'two', { if: 'rev', rev: first.rev });
    expect(await faultOf(drive.put(at('/a'), 'three', { if: 'rev', rev: first.rev }))).toBe('changed');
    await drive.untilLanded();
    expect(remote.text(at('/a'))).toBe('two');
  });

  test('of two writes that may only create a file, one succeeds', async () => {
    const outcomes = await Promise.all(
      ['x', 'y'].map((text) => faultOf(drive.put(at('/a'), text, { if: 'absent' }))),
    );
    expect(outcomes.sort()).toEqual(['changed', 'none']);
  });

  test('properties stay with a pending file, whenever they were set', async () => {
    const { properties } = drive.files.state;
    const gate = remote.holdNext('write', 'end');
    const { id } = await drive.put(at('/a'), 'one');
    await properties.change(id, [{ set: { namespace: 'n', name: 'early', xml: '<p/>' } }]);
    gate.release();
    await drive.untilLanded();
    await properties.change(id, [{ set: { namespace: 'n', name: 'late', xml: '<p/>' } }]);
    const now = (await drive.fileAt(at('/a'))).id;
    expect(now).not.toBe(id);
    const found = await properties.of([id, now]);
    for (const each of [id, now]) expect(found.get(each)?.map(({ name }) => name)).toEqual(['early', 'late']);
  });

  test('a modification time set on a pending file costs no call', async () => {
    remote.failNext('write', 'unavailable');
    await drive.put(at('/a'), 'text');
    while (drive.warnings.length === 0) await turn();
    const modifiedMs = Date.UTC(2001, 1, 1);
    const calls = remote.questions;
    expect(await drive.files.setModified(at('/a'), modifiedMs)).toMatchObject({ modifiedMs });
    expect(remote.questions).toBe(calls);
    await drive.clock.advance(1_000);
    await drive.untilLanded();
    expect(remote.entryAt(at('/a'))).toMatchObject({ modifiedMs });
    expect((await drive.fileAt(at('/a'))).modifiedMs).toBe(modifiedMs);
  });

  test('a modification time set while a file is being sent holds too', async () => {
    const gate = remote.holdNext('write', 'begin');
    await drive.put(at('/a'), 'text');
    await gate.reached;
    const modifiedMs = Date.UTC(2001, 1, 1);
    const set = drive.files.setModified(at('/a'), modifiedMs);
    gate.release();
    expect(await set).toMatchObject({ modifiedMs });
    expect((await drive.fileAt(at('/a'))).modifiedMs).toBe(modifiedMs);
    await drive.untilLanded();
    expect((await drive.fileAt(at('/a'))).modifiedMs).toBe(modifiedMs);
  });
});

test('an acknowledged file is never missing from a listing while others come, go and land', async () => {
  const folder = (await drive.files.createFolder(at('/f'))).path;
  for (let round = 0; round < 40; round++) {
    const path = joinPath(folder, `${round % 4}`);
    const written = await drive.put(path, `round ${round}`);
    const [, listing] = await Promise.all([turn(round % 3), drive.files.list(folder)]);
    const child = listing.children.find(({ name }) => name === written.name);
    expect(child && seen(child as FileEntry)).toEqual(seen(written));
    if (round % 7 === 6) await drive.files.remove(path, { recoverable: false });
  }
  await drive.untilLanded();
});
