import { execFileSync } from 'node:child_process';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { StateInUse } from '../../src/state/errors.ts';
import { type Journal, JournalFull, type Journals } from '../../src/state/journal.ts';
import { openSqliteJournals } from '../../src/state/sqlite/journal/journals.ts';
import { type Log, type LogFields, silentLog } from '../../src/util/log.ts';
import { openSqlite } from '../../src/util/sqlite/open.ts';
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

async function open(directory = newDirectory(), log: Log = silentLog): Promise<Journals> {
  const [journal, lostAndFound] = [join(directory, 'journal'), join(directory, 'lost')];
  const journals = await openSqliteJournals({ journal, lostAndFound }, log);
  opened.push(journals);
  return journals;
}

const filesIn = (directory: string, drive = 'd') => readdirSync(join(directory, 'journal', 'bodies', drive));

/** Gives the only body its staged name again, as if it had never got its lasting one. Returns the lasting one. */
function unsettle(directory: string): string {
  const [file = ''] = filesIn(directory);
  const staged = `${file.slice('19700101T000002Z-'.length, -'-large'.length)}.staged`;
  const folder = join(directory, 'journal', 'bodies', 'd');
  renameSync(join(folder, file), join(folder, staged));
  return file;
}

journalContract('SQLite', async () => (await open()).drive('d'));

const small = Buffer.from('small');
const large = pseudoRandomBytes(200_000, 1);

describe('the journal in SQLite', () => {
  test('a journal that is reopened has all its writes and bodies, for each drive its own', async () => {
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

  test('a discarded body is deleted at once, and an upload cut off by a kill at the next start', async () => {
    const directory = newDirectory();
    const first = await open(directory);
    const drive = await first.drive('d');
    await accept(drive, pendingWrite('large', large), large);
    const [kept] = filesIn(directory);
    await drive.discard(await drive.stage(pieces(large)));
    expect(filesIn(directory)).toEqual([kept]);
    await drive.stage(pieces(large));
    expect(filesIn(directory)).toHaveLength(2);
    await first.close();
    const again = await (await open(directory)).drive('d');
    expect([filesIn(directory), again.lostFiles]).toEqual([[kept], 0]);
    await again.forget(['large']);
    expect(filesIn(directory)).toEqual([]);
  });

  test('a kill between the record of a body and its lasting name loses nothing', async () => {
    const directory = newDirectory();
    const first = await open(directory);
    await accept(await first.drive('d'), pendingWrite('large', large), large);
    await first.close();
    const file = unsettle(directory);
    const again = await (await open(directory)).drive('d');
    expect([filesIn(directory), again.lostFiles]).toEqual([[file], 0]);
    expect((await bodyOf(again, 'large')).equals(large)).toBe(true);
  });

  test('a body whose lasting name the disk refuses stays under its staged name, where each later start finds and reads it', async () => {
    const directory = newDirectory();
    const first = await open(directory);
    await accept(await first.drive('d'), pendingWrite('large', large), large);
    await first.close();
    unsettle(directory);
    const database = openSqlite(join(directory, 'journal', 'state.db'));
    // No file can get this name, because it is in a folder that does not exist.
    database.prepare("UPDATE writes SET body_file = 'none/' || body_file").run();
    database.close();
    for (let start = 0; start < 2; start++) {
      const journals = await open(directory);
      const drive = await journals.drive('d');
      expect((await bodyOf(drive, 'large')).equals(large)).toBe(true);
      expect([filesIn(directory), drive.lostFiles]).toEqual([[expect.stringMatching(/\.staged$/)], 0]);
      await journals.close();
    }
    const drive = await (await open(directory)).drive('d');
    await drive.forget(['large']);
    expect(filesIn(directory)).toEqual([]);
  });

  test('the names of bodies and of lost files have no character that FAT, exFAT or NTFS refuses', async () => {
    const directory = newDirectory();
    const drive = await (await open(directory)).drive('d');
    const write = (id: string, bytes: Buffer) =>
      pendingWrite(id, bytes, { path: path('/Docs/a?:*"<>|\\\u0001\u007fö.txt. ') });
    await accept(drive, write('large', large), large);
    expect(filesIn(directory)).toEqual([expect.stringMatching(/-a_{10}ö\.txt\._$/)]);
    await accept(drive, write('small', small), small);
    expect(await drive.lose(write('small', small), 'refused')).toMatch(/-a_{10}ö\.txt\._$/);
  });

  test('a landed body whose file a kill left behind is removed at the next start, and is not lost', async () => {
    const directory = newDirectory();
    const first = await open(directory);
    const drive = await first.drive('d');
    await accept(drive, pendingWrite('large', large), large);
    const [file = ''] = filesIn(directory);
    await drive.forget(['large']);
    writeFileSync(join(directory, 'journal', 'bodies', 'd', file), large);
    await first.close();
    const again = await (await open(directory)).drive('d');
    expect([filesIn(directory), again.lostFiles]).toEqual([[], 0]);
  });

  test('a journal that is open cannot be opened again', async () => {
    const directory = newDirectory();
    await open(directory);
    await expect(open(directory)).rejects.toThrow(StateInUse);
  });
});

describe('acknowledged bodies without a record', () => {
  const events: { event: string; fields: LogFields | undefined }[] = [];
  const log: Log = { ...silentLog, error: (event, fields) => void events.push({ event, fields }) };

  beforeEach(() => {
    events.length = 0;
  });

  test('bodies without a record go to the lost-and-found folder of their drive, with a log line', async () => {
    const directory = newDirectory();
    const first = await open(directory);
    const drive = await first.drive('d');
    const bodies = [1, 2, 3].map((seed) => pseudoRandomBytes(100_000 + seed, seed));
    for (const [index, bytes] of bodies.entries())
      await accept(drive, pendingWrite(`${index}`, bytes, { path: path(`/Docs/${index}.odt`) }), bytes);
    await first.close();
    rmSync(join(directory, 'journal', 'state.db'));
    const again = await (await open(directory, log)).drive('d');
    expect([await again.all(), filesIn(directory), again.lostFiles]).toEqual([[], [], 3]);
    const folder = join(directory, 'lost', 'd');
    const names = readdirSync(folder).filter((name) => !name.endsWith('.reason.txt'));
    expect(names.map((name) => name.slice(-5)).sort()).toEqual(['0.odt', '1.odt', '2.odt']);
    for (const name of names)
      expect(readFileSync(join(folder, name)).equals(bodies[Number(name.at(-5))] ?? Buffer.alloc(0))).toBe(
        true,
      );
    const reason = readFileSync(join(folder, `${names[0]}.reason.txt`), 'utf8');
    expect(reason).toContain('the journal has no record of this write');
    expect(events).toEqual([
      { event: expect.stringContaining('lost-and-found'), fields: { files: 3, keptIn: folder } },
    ]);
  });

  test('staged bodies without a record go to the lost-and-found folder too', async () => {
    const directory = newDirectory();
    const first = await open(directory);
    await (await first.drive('d')).stage(pieces(large));
    await first.close();
    rmSync(join(directory, 'journal', 'state.db'));
    expect((await (await open(directory, log)).drive('d')).lostFiles).toBe(1);
  });

  test("bodies that an earlier version left outside the drives' folders are kept, and those with a record still readable", async () => {
    const directory = newDirectory();
    const first = await open(directory);
    const drive = await first.drive('d');
    const bytes = pseudoRandomBytes(100_000, 1);
    await accept(drive, pendingWrite('kept', bytes), bytes);
    await first.close();
    const bodies = join(directory, 'journal', 'bodies');
    const [file = ''] = filesIn(directory);
    renameSync(join(bodies, 'd', file), join(bodies, file));
    writeFileSync(join(bodies, '5f0c6c3e'), 'precious');
    const again = await (await open(directory, log)).drive('d');
    expect((await bodyOf(again, 'kept')).equals(bytes)).toBe(true);
    expect(readdirSync(bodies)).toEqual(['d']);
    expect(readFileSync(join(directory, 'lost', 'unknown.drive', '5f0c6c3e'), 'utf8')).toBe('precious');
    expect(events).toHaveLength(1);
  });

  test('a write-ahead log without its database is kept under another name', async () => {
    const directory = newDirectory();
    await (await open(directory)).close();
    const journal = join(directory, 'journal');
    rmSync(join(journal, 'state.db'));
    writeFileSync(join(journal, 'state.db-wal'), 'the only copy');
    await open(directory, log);
    const kept = readdirSync(journal).filter((name) => name.startsWith('state.db-wal.kept-'));
    expect(kept.map((name) => readFileSync(join(journal, name), 'utf8'))).toEqual(['the only copy']);
    expect(events.map(({ fields }) => fields)).toEqual([{ keptAt: join(journal, kept[0] ?? '') }]);
  });

  test('a damaged database is refused with advice that loses nothing, and its bodies stay', async () => {
    const directory = newDirectory();
    const first = await open(directory);
    const bytes = pseudoRandomBytes(100_000, 1);
    await accept(await first.drive('d'), pendingWrite('large', bytes), bytes);
    await first.close();
    writeFileSync(join(directory, 'journal', 'state.db'), pseudoRandomBytes(8192, 7));
    const refusal = await open(directory).catch((error: Error) => error.message);
    expect(refusal).toMatch(/state\.db is damaged .*; restore the directory from a backup/);
    expect(refusal).toContain('move the whole directory away and keep it');
    expect(filesIn(directory)).toHaveLength(1);
  });
});

describe('the lost-and-found folder', () => {
  const long = `${'ü'.repeat(100)}.odt`;

  test.each([100, 200_000])(
    'a lost write of %i bytes is kept with its reason and counted, also after a restart',
    async (size) => {
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
      expect([await drive.all(), filesIn(directory, 'my%2Fdrive'), drive.lostFiles]).toEqual([[], [], 1]);
      await journals.close();
      expect((await (await open(directory)).drive('my/drive')).lostFiles).toBe(1);
    },
  );

  test('a lost write whose body still has its staged name is kept with its bytes', async () => {
    const directory = newDirectory();
    const drive = await (await open(directory)).drive('d');
    const write = pendingWrite('large', large);
    await accept(drive, write, large);
    unsettle(directory);
    expect(readFileSync(await drive.lose(write, 'refused')).equals(large)).toBe(true);
    expect([await drive.all(), filesIn(directory)]).toEqual([[], []]);
  });

  test('of a lost write whose body a user has removed, only the reason is kept', async () => {
    const directory = newDirectory();
    const drive = await (await open(directory)).drive('d');
    const write = pendingWrite('large', large);
    await accept(drive, write, large);
    rmSync(join(directory, 'journal', 'bodies', 'd', filesIn(directory)[0] ?? ''));
    const keptAt = await drive.lose(write, 'refused');
    expect([readdirSync(join(directory, 'lost', 'd')), await drive.all()]).toEqual([
      [`${basename(keptAt)}.reason.txt`],
      [],
    ]);
  });

  test('losing a write again after a kill keeps the same file', async () => {
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
  /** Mounts a disk of 32 MiB, of which the journal leaves half free. */
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

  test('a disk without a free byte makes new writes fail with JournalFull, while landed writes can still be forgotten', async () => {
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

  test("the journal's database shrinks after a burst of writes", async () => {
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
    'a full disk makes writes of %i bytes fail, keeps all accepted ones, and takes new ones when there is room',
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
