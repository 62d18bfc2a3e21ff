import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, onTestFinished, test } from 'vitest';
import { StateInUse } from '../../src/state/errors.ts';
import { type Journal, JournalFull, type Journals } from '../../src/state/journal.ts';
import { openSqliteJournals } from '../../src/state/sqlite/journal/journals.ts';
import { pseudoRandomBytes } from '../support/bytes.ts';
import { path } from '../support/paths.ts';
import { accept, bodyOf, journalContract, pendingWrite, pieces } from './journal.contract.ts';

const directories: string[] = [];
const opened: Journals[] = [];

afterEach(async () => {
  for (const journals of opened.splice(0)) await journals.close();
  for (const directory of directories.splice(0)) rmSync(directory, { recursive: true });
});

function newDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'davgate-journal-'));
  directories.push(directory);
  return directory;
}

async function open(directory = newDirectory()): Promise<Journals> {
  const [journal, lostAndFound] = [join(directory, 'journal'), join(directory, 'lost')];
  const journals = await openSqliteJournals({ journal, lostAndFound });
  opened.push(journals);
  return journals;
}

const filesIn = (directory: string) => readdirSync(join(directory, 'journal', 'bodies'));

journalContract('SQLite', async () => (await open()).drive('d'));

describe('the journal in SQLite', () => {
  const small = Buffer.from('small');
  const large = pseudoRandomBytes(200_000, 1);

  test('is there after it was closed and opened, for each drive its own', async () => {
    const directory = newDirectory();
    const first = await open(directory);
    const drive = await first.drive('d');
    await accept(drive, pendingWrite('small', small, { path: path('/Ä/x'), dueMs: 7 }), small);
    await accept(drive, pendingWrite('large', large), large);
    await accept(await first.drive('other'), pendingWrite('theirs', small), small);
    const before = await drive.all();
    await first.close();
    const again = await (await open(directory)).drive('d');
    expect(await again.all()).toEqual(before);
    expect(before.map(({ id }) => id)).toEqual(['small', 'large']);
    expect((await bodyOf(again, 'small')).equals(small)).toBe(true);
    expect((await bodyOf(again, 'large')).equals(large)).toBe(true);
  });

  test('removes bodies that nobody needs: at once, and at the next start those that a kill left', async () => {
    const directory = newDirectory();
    const first = await open(directory);
    const drive = await first.drive('d');
    await accept(drive, pendingWrite('large', large), large);
    const [kept] = filesIn(directory);
    await drive.discard(await drive.stage(pieces(large)));
    expect(filesIn(directory)).toEqual([kept]);
    writeFileSync(join(directory, 'journal', 'bodies', 'left behind'), 'half a bo');
    await first.close();
    const again = await (await open(directory)).drive('d');
    expect(filesIn(directory)).toEqual([kept]);
    await again.forget(['large']);
    expect(filesIn(directory)).toEqual([]);
  });

  test('is of one process', async () => {
    const directory = newDirectory();
    await open(directory);
    await expect(open(directory)).rejects.toThrow(StateInUse);
  });
});

describe('what is lost', () => {
  const long = `${'ü'.repeat(100)}.odt`;

  test.each([100, 200_000])('is kept with its reason, and counted (%i bytes)', async (size) => {
    const directory = newDirectory();
    const journals = await open(directory);
    const drive = await journals.drive('my/drive');
    const bytes = pseudoRandomBytes(size, 2);
    const write = pendingWrite('0a1b2c3d-e', bytes, {
      path: path(`/Docs/${long}`),
      acceptedMs: Date.UTC(2026, 0, 2),
    });
    await accept(drive, write, bytes);
    expect(drive.lostFiles).toBe(0);
    const keptAt = await drive.lose(write, 'the name is refused');
    expect(readFileSync(keptAt).equals(bytes)).toBe(true);
    const folder = join(directory, 'lost', 'my%2Fdrive');
    expect(keptAt.startsWith(join(folder, '20260102T000000Z-0a1b2c3d-ü'))).toBe(true);
    const reason = readFileSync(`${keptAt}.reason.txt`, 'utf8');
    for (const fact of ['the name is refused', `/Docs/${long}`, 'my/drive', write.contentHash, `${size}`])
      expect(reason).toContain(fact);
    expect(readdirSync(folder)).toHaveLength(2);
    expect([await drive.all(), filesIn(directory), drive.lostFiles]).toEqual([[], [], 1]);
    await journals.close();
    expect((await (await open(directory)).drive('my/drive')).lostFiles).toBe(1);
  });

  test('a second time, after a kill in between, is the same file', async () => {
    const directory = newDirectory();
    const drive = await (await open(directory)).drive('d');
    const bytes = pseudoRandomBytes(100_000, 3);
    const write = pendingWrite('0a1b2c3d', bytes);
    await accept(drive, write, bytes);
    const keptAt = await drive.lose(write, 'once');
    await accept(drive, write, bytes);
    expect(await drive.lose(write, 'twice')).toBe(keptAt);
    expect(readFileSync(keptAt).equals(bytes)).toBe(true);
    expect(drive.lostFiles).toBe(1);
  });
});

describe('a full disk', () => {
  /** 32 MiB, of which the journal leaves half free. */
  function smallDisk(): string {
    const disk = mkdtempSync(join(tmpdir(), 'davgate-small-disk-'));
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=32m', 'tmpfs', disk], { stdio: 'pipe' });
    } catch (failure) {
      throw new Error(`this test needs root and the right to mount a tmpfs: ${failure}`);
    }
    onTestFinished(() => {
      execFileSync('umount', ['-l', disk]);
      rmSync(disk, { recursive: true });
    });
    const directory = join(disk, 'data');
    mkdirSync(directory);
    return directory;
  }

  async function fill(drive: Journal, sizeBytes: number): Promise<Map<string, Buffer>> {
    const accepted = new Map<string, Buffer>();
    for (let index = 0; ; index++) {
      const bytes = pseudoRandomBytes(sizeBytes, index);
      try {
        await accept(drive, pendingWrite(`${index}`, bytes), bytes);
      } catch (error) {
        expect(error).toBeInstanceOf(JournalFull);
        return accepted;
      }
      accepted.set(`${index}`, bytes);
    }
  }

  test('that others have filled to the last byte refuses writes too; what has landed is crossed out all the same', async () => {
    const directory = smallDisk();
    const drive = await (await open(directory)).drive('d');
    const large = await drive.stage(pieces(pseudoRandomBytes(300_000, 2)));
    execFileSync('sh', ['-c', `cat /dev/zero > ${join(directory, 'filler')} 2>/dev/null || true`]);
    await expect(drive.stage(pieces(pseudoRandomBytes(300_000, 3)))).rejects.toThrow(JournalFull);
    const accepted = await fill(drive, 30_000);
    expect((await drive.all()).map(({ id }) => id)).toEqual([...accepted.keys()]);
    for (const [id, bytes] of accepted) expect((await bodyOf(drive, id)).equals(bytes)).toBe(true);
    await drive.discard(large);
    for (const id of accepted.keys()) await drive.forget([id]);
    expect(await drive.all()).toEqual([]);
    rmSync(join(directory, 'filler'));
    const bytes = pseudoRandomBytes(30_000, 999);
    await accept(drive, pendingWrite('more', bytes), bytes);
    expect((await drive.all()).map(({ id }) => id)).toEqual(['more']);
    expect((await bodyOf(drive, 'more')).equals(bytes)).toBe(true);
  });

  test('is given back what a burst of writes took', async () => {
    const directory = newDirectory();
    const drive = await (await open(directory)).drive('d');
    const size = () => statSync(join(directory, 'journal', 'state.db')).size;
    const bytes = pseudoRandomBytes(60_000, 1);
    const ids = Array.from({ length: 300 }, (_, index) => `${index}`);
    await Promise.all(ids.map((id) => accept(drive, pendingWrite(id, bytes), bytes)));
    await drive.forget(ids.slice(1));
    expect((await bodyOf(drive, '0')).equals(bytes)).toBe(true);
    await drive.forget(['0']);
    await opened.splice(0)[0]?.close();
    expect(size()).toBeLessThan(8_000_000);
  });

  test.each([30_000, 300_000])(
    'refuses writes of %i bytes, keeps all that it accepted, and goes on when there is room',
    async (size) => {
      const directory = smallDisk();
      const first = await open(directory);
      const drive = await first.drive('d');
      const accepted = await fill(drive, size);
      expect(accepted.size).toBeGreaterThan(5);
      for (const [id, bytes] of accepted) expect((await bodyOf(drive, id)).equals(bytes)).toBe(true);
      const files = filesIn(directory).length;
      expect(files).toBe(size > 64 * 1024 ? accepted.size : 0);
      const [kept = '', ...landed] = [...accepted.keys()].reverse();
      for (const id of landed) await drive.forget([id]);
      await first.close();
      const again = await (await open(directory)).drive('d');
      const bytes = pseudoRandomBytes(size, 999);
      await accept(again, pendingWrite('more', bytes), bytes);
      expect((await again.all()).map(({ id }) => id)).toEqual([kept, 'more']);
      expect((await bodyOf(again, kept)).equals(accepted.get(kept) ?? bytes)).toBe(true);
      expect((await bodyOf(again, 'more')).equals(bytes)).toBe(true);
    },
  );
});
