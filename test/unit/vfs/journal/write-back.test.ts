import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { join as joinPath, type Path, ROOT } from '../../../../src/util/path.ts';
import { type Fault, FileError } from '../../../../src/vfs/errors.ts';
import type { FileEntry, WriteMode } from '../../../../src/vfs/files.ts';
import { bodyOf, MemoryDrive, turn } from '../../../support/memory-drive.ts';
import { at, MemoryRemote } from '../../../support/memory-remote.ts';

let remote: MemoryRemote;
let drive: MemoryDrive;

beforeEach(async () => {
  remote = new MemoryRemote();
  drive = await MemoryDrive.open(remote, { writeBack: true });
});

afterEach(async () => {
  remote.forgetGates();
  await drive.close();
});

const put = async (path: Path, text: string, mode: WriteMode = { if: 'any' }) => {
  const { entry } = await drive.files.write(path, bodyOf(text), { mode, sizeBytes: Buffer.byteLength(text) });
  if (entry.kind !== 'file') throw new Error('no file');
  return entry;
};

const statFile = async (path: Path): Promise<FileEntry> => {
  const entry = await drive.files.stat(path);
  if (entry?.kind !== 'file') throw new Error(`no file at ${path}`);
  return entry;
};

async function faultOf(work: Promise<unknown>): Promise<Fault | 'none'> {
  try {
    await work;
    return 'none';
  } catch (error) {
    if (error instanceof FileError) return error.fault;
    throw error;
  }
}

/** Resolves when nothing is pending any more; the test's own time limit ends it. */
async function untilLanded(): Promise<void> {
  while (drive.files.depth().files > 0) await turn();
}

/** What lies in the lost-and-found folder: the text of each file, and the reason beside it. */
function lost(): { text: string; reason: string }[] {
  const names = readdirSync(drive.lostAndFound).filter((name) => !name.endsWith('.reason.txt'));
  const read = (name: string) => readFileSync(join(drive.lostAndFound, name), 'utf8');
  return names.map((name) => ({ text: read(name), reason: read(`${name}.reason.txt`) }));
}

/** What a client could compare before and after the write has landed. */
const seen = ({ path, name, rev, sizeBytes, modifiedMs }: FileEntry) => ({
  ...{ path, name, rev, sizeBytes, modifiedMs },
});

describe('a write that waits for the service', () => {
  test('is there for everyone at once, and nothing of it changes when it lands', async () => {
    const gate = remote.holdNext('upload', 'begin');
    const written = await put(at('/a.txt'), '0123456789');
    expect(remote.paths).toEqual([]);
    expect(drive.files.depth()).toEqual({ files: 1, bytes: 10, lostFiles: 0 });
    expect(await statFile(at('/A.TXT'))).toEqual(written);
    expect((await drive.files.list(ROOT)).children).toEqual([written]);
    expect(await drive.text(at('/a.txt'))).toBe('0123456789');
    const part: Uint8Array[] = [];
    const { signal } = new AbortController();
    for await (const piece of drive.files.read(written, { start: 3, end: 6 }, signal)) part.push(piece);
    expect(Buffer.concat(part).toString()).toBe('345');
    gate.release();
    await untilLanded();
    expect(remote.text(at('/a.txt'))).toBe('0123456789');
    const landed = await statFile(at('/a.txt'));
    expect(seen(landed)).toEqual(seen(written));
    expect((await drive.files.list(ROOT)).children.map((child) => seen(child as FileEntry))).toEqual([
      seen(written),
    ]);
    await drive.untilAlive();
    expect(seen(await statFile(at('/a.txt')))).toEqual(seen(written));
  });

  test('can be read by who saw it before it landed', async () => {
    const gate = remote.holdNext('upload', 'begin');
    const before = await put(at('/a'), 'text');
    gate.release();
    await untilLanded();
    const pieces: Uint8Array[] = [];
    for await (const piece of drive.files.read(before, undefined, new AbortController().signal))
      pieces.push(piece);
    expect(Buffer.concat(pieces).toString()).toBe('text');
  });

  test('an unchanged folder is the same object', async () => {
    await put(at('/a'), 'x');
    await untilLanded();
    const gate = remote.holdNext('upload', 'begin');
    await put(at('/b'), 'y');
    await gate.reached;
    expect(await drive.files.list(ROOT)).toBe(await drive.files.list(ROOT));
    gate.release();
    await untilLanded();
    expect(await drive.files.list(ROOT)).toBe(await drive.files.list(ROOT));
  });

  test('space is told as if it had landed', async () => {
    await put(at('/a'), 'old');
    await untilLanded();
    const before = await drive.files.freeSpace();
    const gate = remote.holdNext('upload', 'begin');
    await put(at('/a'), 'longer');
    await put(at('/a'), 'longest');
    expect((await drive.files.freeSpace())?.usedBytes).toBe((before?.usedBytes ?? 0) + 4);
    gate.release();
    await untilLanded();
    expect((await drive.files.freeSpace())?.usedBytes).toBe((before?.usedBytes ?? 0) + 4);
  });

  test('what the account has no room for is refused before it is acknowledged', async () => {
    remote.allocatedBytes = 100;
    const gate = remote.holdNext('upload', 'begin');
    await drive.files.freeSpace();
    await put(at('/a'), 'x'.repeat(60));
    expect(await faultOf(put(at('/b'), 'x'.repeat(60)))).toBe('no-space');
    expect(await drive.files.stat(at('/b'))).toBeUndefined();
    gate.release();
    await untilLanded();
  });

  test('many are sent together', async () => {
    const gate = remote.holdNext('upload', 'begin');
    await Promise.all(Array.from({ length: 100 }, (_, index) => put(at(`/${index}`), `${index}`)));
    gate.release();
    await drive.clock.during(untilLanded());
    expect(remote.paths).toHaveLength(100);
    expect(remote.count('upload')).toBeLessThan(10);
  });
});

describe('several writes of one file', () => {
  test('before the first is on its way: only the last is sent', async () => {
    const gate = remote.holdNext('upload', 'begin');
    await put(at('/other'), 'x');
    await gate.reached;
    // The lane is busy, and the drain has given it these; so hold the service first.
    await Promise.all([1, 2, 3].map((number) => put(at('/a'), `version ${number}`)));
    gate.release();
    await untilLanded();
    expect(remote.text(at('/a'))).toBe('version 3');
  });

  test('while one is on its way: they land in their order, each on the one before', async () => {
    const gate = remote.holdNext('upload', 'begin');
    const first = await put(at('/a'), 'one');
    await gate.reached;
    const second = await put(at('/a'), 'two', { if: 'rev', rev: first.rev });
    const third = await put(at('/a'), 'three', { if: 'rev', rev: second.rev });
    expect(await drive.text(at('/a'))).toBe('three');
    gate.release();
    await untilLanded();
    expect(remote.text(at('/a'))).toBe('three');
    expect(remote.paths).toEqual(['/a']);
    expect((await statFile(at('/a'))).rev).toBe(third.rev);
  });

  test('conditions are held against what is seen, and after landing too', async () => {
    const gate = remote.holdNext('upload', 'begin');
    const first = await put(at('/a'), 'one', { if: 'absent' });
    expect(await faultOf(put(at('/a'), 'two', { if: 'absent' }))).toBe('changed');
    expect(await faultOf(put(at('/a'), 'two', { if: 'rev', rev: 'another' }))).toBe('changed');
    gate.release();
    await untilLanded();
    await put(at('/a'), 'two', { if: 'rev', rev: first.rev });
    expect(await faultOf(put(at('/a'), 'three', { if: 'rev', rev: first.rev }))).toBe('changed');
    await untilLanded();
    expect(remote.text(at('/a'))).toBe('two');
  });

  test('of two that may only create, one does', async () => {
    const outcomes = await Promise.all(
      ['x', 'y'].map((text) => faultOf(put(at('/a'), text, { if: 'absent' }))),
    );
    expect(outcomes.sort()).toEqual(['changed', 'none']);
  });

  test('its properties stay with it, whenever they were set', async () => {
    const { properties } = drive.files.state;
    const gate = remote.holdNext('upload', 'end');
    const { id } = await put(at('/a'), 'one');
    await properties.change(id, [{ set: { namespace: 'n', name: 'early', xml: '<p/>' } }]);
    gate.release();
    await untilLanded();
    await properties.change(id, [{ set: { namespace: 'n', name: 'late', xml: '<p/>' } }]);
    const now = (await statFile(at('/a'))).id;
    expect(now).not.toBe(id);
    const found = await properties.of([id, now]);
    for (const each of [id, now]) expect(found.get(each)?.map(({ name }) => name)).toEqual(['early', 'late']);
  });

  test('a time that is set goes along, without a call', async () => {
    remote.failNext('upload', 'unavailable');
    await put(at('/a'), 'text');
    while (drive.warnings.length === 0) await turn();
    const modifiedMs = Date.UTC(2001, 1, 1);
    const calls = remote.questions;
    expect(await drive.files.setModified(at('/a'), modifiedMs)).toMatchObject({ modifiedMs });
    expect(remote.questions).toBe(calls);
    await drive.clock.advance(1_000);
    await untilLanded();
    expect(remote.entryAt(at('/a'))).toMatchObject({ modifiedMs });
    expect((await statFile(at('/a'))).modifiedMs).toBe(modifiedMs);
  });

  test('a time that is set while it is on its way holds too', async () => {
    const gate = remote.holdNext('upload', 'begin');
    await put(at('/a'), 'text');
    await gate.reached;
    const modifiedMs = Date.UTC(2001, 1, 1);
    const set = drive.files.setModified(at('/a'), modifiedMs);
    gate.release();
    expect(await set).toMatchObject({ modifiedMs });
    expect((await statFile(at('/a'))).modifiedMs).toBe(modifiedMs);
  });
});

describe('empty files', () => {
  test('wait for their body, and cost no commit of their own', async () => {
    await put(at('/a'), '');
    await turn(20);
    expect(remote.count('upload')).toBe(0);
    await put(at('/a'), 'body');
    await untilLanded();
    expect(remote.count('upload')).toBe(1);
    expect(remote.text(at('/a'))).toBe('body');
  });

  test('are sent when no body came', async () => {
    await put(at('/a'), '');
    await drive.clock.advance(5_000);
    await untilLanded();
    expect(remote.text(at('/a'))).toBe('');
  });

  test('are held for as long as they are locked', async () => {
    const { clock } = drive;
    const held = await drive.files.hold(at('/a'), clock.now() + 60_000);
    expect(held.created).toBe(true);
    expect(await drive.files.hold(at('/a'), clock.now() + 120_000)).toEqual({ ...held, created: false });
    await clock.advance(110_000);
    expect(remote.paths).toEqual([]);
    await drive.files.settle(at('/a'));
    await untilLanded();
    expect(remote.paths).toEqual(['/a']);
  });

  test('give way to what somebody else put there', async () => {
    await put(at('/a'), '');
    remote.putFile(at('/a'), 'theirs');
    await drive.clock.advance(5_000);
    await untilLanded();
    expect([remote.paths, remote.text(at('/a'))]).toEqual([['/a'], 'theirs']);
  });
});

describe('what is done to a file that waits', () => {
  test('DELETE: it is never sent', async () => {
    const gate = remote.holdNext('upload', 'begin');
    await put(at('/other'), 'x');
    await gate.reached;
    await put(at('/a'), '');
    await drive.files.remove(at('/a'), { recoverable: false });
    expect(await drive.files.stat(at('/a'))).toBeUndefined();
    expect(await faultOf(drive.files.remove(at('/a'), { recoverable: false }))).toBe('not-found');
    gate.release();
    await untilLanded();
    await drive.clock.advance(60_000);
    expect(remote.paths).toEqual(['/other']);
    expect(remote.count('remove')).toBe(0);
  });

  test('DELETE while it is on its way: it is gone at the service too', async () => {
    const gate = remote.holdNext('upload', 'begin');
    await put(at('/a'), 'one');
    await gate.reached;
    await put(at('/a'), 'two');
    const removed = drive.files.remove(at('/a'), { recoverable: false });
    gate.release();
    await removed;
    expect(remote.paths).toEqual([]);
    expect(drive.files.depth().files).toBe(0);
  });

  test('DELETE of a new version takes the old one along', async () => {
    remote.putFile(at('/a'), 'old');
    await put(at('/a'), '');
    await drive.files.remove(at('/a'), { recoverable: false });
    expect(remote.paths).toEqual([]);
  });

  test('DELETE that must be recoverable: what was written is in the trash', async () => {
    await put(at('/a'), 'text');
    await drive.files.remove(at('/a'), { recoverable: true });
    expect(remote.trash.map(({ path }) => path)).toEqual(['/a']);
  });

  test('DELETE that fails: the write is not lost', async () => {
    remote.putFile(at('/a'), 'old');
    await drive.files.hold(at('/b'), drive.clock.now() + 60_000);
    const gate = remote.holdNext('upload', 'begin');
    await put(at('/c'), 'x');
    await gate.reached;
    await put(at('/a'), 'new');
    remote.failNext('remove', 'no-permission');
    const removed = faultOf(drive.files.remove(at('/a'), { recoverable: false }));
    gate.release();
    expect(await removed).toBe('forbidden');
    await drive.files.settle(at('/b'));
    await untilLanded();
    expect(remote.text(at('/a'))).toBe('new');
  });

  test('DELETE of a folder: nothing of it comes back', async () => {
    await drive.files.createFolder(at('/f'));
    const gate = remote.holdNext('upload', 'begin');
    await put(at('/f/a'), 'x');
    await gate.reached;
    await Promise.all([put(at('/f/b'), 'x'), put(at('/f/c'), '')]);
    const removed = drive.files.remove(at('/f'), { recoverable: false });
    gate.release();
    await removed;
    await drive.clock.advance(60_000);
    expect([remote.paths, drive.files.depth().files]).toEqual([[], 0]);
    expect(await faultOf(put(at('/f/d'), 'x'))).toBe('parent-missing');
  });

  test('MOVE and COPY: what was written is what is moved', async () => {
    await drive.files.createFolder(at('/f'));
    await Promise.all([put(at('/f/a'), 'x'), put(at('/f/b'), '')]);
    await drive.files.copy(at('/f'), at('/copy'), { overwrite: false, shallow: false });
    await drive.files.move(at('/f'), at('/moved'), { overwrite: false });
    expect(remote.paths).toEqual(['/copy', '/copy/a', '/copy/b', '/moved', '/moved/a', '/moved/b']);
    await put(at('/target'), 'old');
    await put(at('/source'), 'new');
    expect(await faultOf(drive.files.move(at('/source'), at('/target'), { overwrite: false }))).toBe(
      'exists',
    );
    expect(await drive.files.move(at('/source'), at('/target'), { overwrite: true })).toMatchObject({
      created: false,
    });
    expect(remote.text(at('/target'))).toBe('new');
  });

  test('MOVE while the service is away: told so, and the write stays', async () => {
    await put(at('/a'), '');
    remote.failNext('upload', 'offline');
    expect(await faultOf(drive.files.move(at('/a'), at('/b'), { overwrite: false }))).toBe('offline');
    expect(await statFile(at('/a'))).toBeDefined();
    await drive.clock.advance(60_000);
    await untilLanded();
    expect(remote.paths).toEqual(['/a']);
  });

  test('MKCOL: there is a file already', async () => {
    await put(at('/a'), '');
    expect(await faultOf(drive.files.createFolder(at('/a')))).toBe('exists');
    expect(await faultOf(drive.files.createFolder(at('/a/b')))).toBe('parent-missing');
    expect(await faultOf(put(at('/a/b'), 'x'))).toBe('parent-missing');
    expect(await faultOf(drive.files.list(at('/a')))).toBe('not-a-folder');
  });

  test('a shared link: it is sent first', async () => {
    await put(at('/a'), '');
    expect(await drive.files.sharedLink(at('/a'))).toBeUndefined();
    await drive.files.unshareLink(at('/a'));
    const link = await drive.files.shareLink(at('/a'), {});
    expect(await drive.files.sharedLink(at('/a'))).toEqual(link);
  });
});

describe('what somebody else did meanwhile', () => {
  /** A write that waits while `meanwhile` happens at the service. */
  async function conflict(path: Path, text: string, meanwhile: () => void): Promise<void> {
    const gate = remote.holdNext('upload', 'begin');
    await put(path, text);
    await gate.reached;
    meanwhile();
    gate.release();
    await untilLanded();
  }

  const copies = () => remote.paths.filter((path) => path.includes('conflicted copy')) as Path[];

  test('a new file of the same name: both are kept', async () => {
    await conflict(at('/report.final.odt'), 'ours', () => remote.putFile(at('/report.final.odt'), 'theirs'));
    expect(remote.text(at('/report.final.odt'))).toBe('theirs');
    expect(copies()).toEqual(['/report.final (conflicted copy 2026-01-01 00.00.00).odt']);
    expect(copies().map((path) => remote.text(path))).toEqual(['ours']);
    expect(await drive.text(at('/report.final.odt'))).toBe('theirs');
  });

  test('another version: both are kept, and what is written next replaces theirs', async () => {
    await put(at('/a'), 'base');
    await untilLanded();
    await conflict(at('/a'), 'ours', () => remote.putFile(at('/a'), 'theirs'));
    expect(remote.text(at('/a'))).toBe('theirs');
    expect(copies().map((path) => remote.text(path))).toEqual(['ours']);
    await put(at('/a'), 'next');
    await untilLanded();
    expect(remote.text(at('/a'))).toBe('next');
  });

  test('the same content: it is one file', async () => {
    await conflict(at('/a'), 'same', () => remote.putFile(at('/a'), 'same'));
    expect(remote.paths).toEqual(['/a']);
  });

  test('a folder of that name: both are kept', async () => {
    await conflict(at('/a'), 'ours', () => remote.putFolder(at('/a')));
    expect(remote.entryAt(at('/a'))?.kind).toBe('folder');
    expect(copies().map((path) => remote.text(path))).toEqual(['ours']);
  });

  test('a deletion: the edit outlives it', async () => {
    await put(at('/a'), 'base');
    await untilLanded();
    const gate = remote.holdNext('upload', 'begin');
    await put(at('/a'), 'edit');
    await gate.reached;
    remote.delete(at('/a'));
    gate.release();
    await drive.clock.during(untilLanded());
    expect(remote.text(at('/a'))).toBe('edit');
  });

  test('the folder has gone: the write is kept in the lost-and-found folder', async () => {
    await drive.files.createFolder(at('/f'));
    await drive.files.hold(at('/f/a'), drive.clock.now() + 60_000);
    const gate = remote.holdNext('upload', 'begin');
    await put(at('/f/b'), 'precious');
    await gate.reached;
    remote.failNext('upload', 'conflict-ancestor');
    gate.release();
    while (drive.files.depth().files > 1) await turn();
    const [only] = lost();
    expect(only?.text).toBe('precious');
    expect(only?.reason).toContain('/f/b');
    expect(await drive.files.stat(at('/f/b'))).toBeUndefined();
    expect(drive.files.depth()).toMatchObject({ files: 1, lostFiles: 1 });
  });
});

describe('a service that fails', () => {
  test('the write is sent again when it is back, others with it', async () => {
    remote.failNext('upload', 'unavailable');
    await put(at('/a'), 'x');
    while (drive.warnings.length === 0) await turn();
    await put(at('/b'), 'y');
    await turn(20);
    expect(remote.paths).toEqual([]);
    expect(await drive.text(at('/b'))).toBe('y');
    await drive.clock.advance(1_000);
    await untilLanded();
    expect(remote.paths).toEqual(['/a', '/b']);
  });

  test('a full account: it waits until there is room', async () => {
    remote.failNext('upload', 'insufficient-space');
    await put(at('/a'), 'x');
    while (drive.warnings.length === 0) await turn();
    expect(drive.files.depth()).toEqual({ files: 1, bytes: 1, lostFiles: 0 });
    await drive.clock.advance(1_000);
    await untilLanded();
    expect(remote.paths).toEqual(['/a']);
  });

  test.each(['no-permission', 'too-large'] as const)(
    'a refusal for good (%s): the write is kept',
    async (failure) => {
      remote.failNext('upload', failure);
      await put(at('/a'), 'precious');
      await untilLanded();
      expect(lost().map(({ text }) => text)).toEqual(['precious']);
      expect(drive.files.depth()).toEqual({ files: 0, bytes: 0, lostFiles: 1 });
      expect(await drive.files.stat(at('/a'))).toBeUndefined();
    },
  );

  test('an answer without sense, again and again: after ten times it is kept here', async () => {
    for (let count = 0; count < 10; count++) remote.failNext('upload', 'hash-mismatch');
    await put(at('/a'), 'precious');
    await drive.clock.during(untilLanded());
    expect(lost().map(({ text }) => text)).toEqual(['precious']);
    expect(drive.warnings).toHaveLength(9);
  });
});

describe('a journal that is full', () => {
  beforeEach(async () => {
    await drive.close();
    const journalLimits = { filesMax: 3, bytesMax: 100 };
    drive = await MemoryDrive.open(remote, { writeBack: true, journalLimits });
  });

  test('what does not fit waits for the service', async () => {
    const gate = remote.holdNext('upload', 'begin');
    await put(at('/a'), 'x'.repeat(80));
    await gate.reached;
    const large = put(at('/b'), 'y'.repeat(80));
    await turn(20);
    expect(await drive.files.stat(at('/b'))).toBeUndefined();
    gate.release();
    await large;
    expect(remote.text(at('/b'))).toBe('y'.repeat(80));
    await untilLanded();
  });

  test('it may replace what is pending, under its condition', async () => {
    const { rev } = await put(at('/a'), 'x');
    expect(await faultOf(put(at('/a'), 'y'.repeat(200), { if: 'rev', rev: 'other' }))).toBe('changed');
    await put(at('/a'), 'y'.repeat(200), { if: 'rev', rev });
    expect(remote.text(at('/a'))).toBe('y'.repeat(200));
    expect(await faultOf(put(at('/a'), 'z'.repeat(200), { if: 'rev', rev }))).toBe('changed');
  });

  test('a body of unknown length that turns out too long is refused', async () => {
    const body = bodyOf('x'.repeat(60), 'y'.repeat(60));
    expect(await faultOf(drive.files.write(at('/a'), body, { mode: { if: 'any' } }))).toBe('no-space');
    expect(await drive.files.stat(at('/a'))).toBeUndefined();
    expect(drive.files.depth().files).toBe(0);
  });
});

test('a journal that takes no more sends what is left in it', async () => {
  for (let count = 0; count < 3; count++) remote.failNext('upload', 'offline');
  await put(at('/a'), 'left');
  while (drive.warnings.length === 0) await turn();
  await drive.files.close();
  drive.use({ journalLimits: { filesMax: 0 } });
  await drive.start();
  expect(await drive.text(at('/a'))).toBe('left');
  await drive.clock.during(untilLanded());
  await put(at('/b'), 'through');
  expect([remote.text(at('/a')), remote.text(at('/b'))]).toEqual(['left', 'through']);
});

describe('a kill', () => {
  async function restart(): Promise<void> {
    drive.kill();
    remote.forgetGates();
    await drive.start();
  }

  test('all that was acknowledged is there afterwards, and lands', async () => {
    remote.putFile(at('/replaced'), 'old');
    const gate = remote.holdNext('upload', 'begin');
    await put(at('/first'), 'x');
    await gate.reached;
    const text = 'y'.repeat(100_000);
    const written = await put(at('/large'), text);
    await put(at('/replaced'), 'new');
    await put(at('/empty'), '');
    await restart();
    expect(seen(await statFile(at('/large')))).toEqual(seen(written));
    await untilLanded();
    expect(remote.paths).toEqual(['/empty', '/first', '/large', '/replaced']);
    expect(remote.text(at('/large'))).toBe(text);
    expect(remote.text(at('/replaced'))).toBe('new');
  });

  test.each(['new', 'replaced'])(
    'after the commit, before it was crossed out: it is one file (%s)',
    async (what) => {
      if (what === 'replaced') remote.putFile(at('/a'), 'old');
      const gate = remote.holdNext('upload', 'end');
      const { id } = await put(at('/a'), 'text');
      await drive.state.properties.change(id, [{ set: { namespace: 'n', name: 'p', xml: '<p/>' } }]);
      await gate.reached;
      await put(at('/a'), 'next');
      await restart();
      await untilLanded();
      expect([remote.paths, remote.text(at('/a'))]).toEqual([['/a'], 'next']);
      const now = await statFile(at('/a'));
      expect((await drive.state.properties.of([now.id])).get(now.id)).toHaveLength(1);
    },
  );

  test('SIGTERM sends what waits', async () => {
    await put(at('/a'), '');
    await put(at('/b'), 'text');
    await drive.files.close();
    expect(remote.paths).toEqual(['/a', '/b']);
    await drive.start();
  });

  test('SIGTERM while the service is away leaves it for the next start', async () => {
    for (let count = 0; count < 3; count++) remote.failNext('upload', 'offline');
    await put(at('/a'), 'text');
    while (drive.warnings.length === 0) await turn();
    await drive.files.close();
    expect(remote.paths).toEqual([]);
    await drive.start();
    expect(await drive.text(at('/a'))).toBe('text');
    await drive.clock.during(untilLanded());
    expect(remote.text(at('/a'))).toBe('text');
  });

  test('SIGTERM does not wait for a service that hangs', async () => {
    const gate = remote.holdNext('upload', 'begin');
    await put(at('/a'), 'text');
    await gate.reached;
    await drive.clock.during(drive.files.close());
    remote.forgetGates();
    await drive.start();
    await untilLanded();
    expect(remote.text(at('/a'))).toBe('text');
  });
});

test('what a write acknowledged while others come, go and land is never missing from a listing', async () => {
  const folder = (await drive.files.createFolder(at('/f'))).path;
  for (let round = 0; round < 40; round++) {
    const path = joinPath(folder, `${round % 4}`);
    const written = await put(path, `round ${round}`);
    const [, listing] = await Promise.all([turn(round % 3), drive.files.list(folder)]);
    const child = listing.children.find(({ name }) => name === written.name);
    expect(child && seen(child as FileEntry)).toEqual(seen(written));
    if (round % 7 === 6) await drive.files.remove(path, { recoverable: false });
  }
  await untilLanded();
});
