import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { StateUnwritable } from '../../../src/state/errors.ts';
import type { Journals } from '../../../src/state/journal.ts';
import { openSqliteJournals } from '../../../src/state/sqlite/journal/journals.ts';
import { type Log, silentLog } from '../../../src/util/log.ts';
import { Sqlite, type SqliteDatabase } from '../../../src/util/sqlite/sqlite.ts';
import { accept, bodyOf, pendingWrite } from '../../contract/journal.contract.ts';
import { pseudoRandomBytes } from '../../support/bytes.ts';

let directory: string;
let journals: Journals;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'davgate-failing-journal-'));
});

afterEach(async () => {
  await journals.close();
  rmSync(directory, { recursive: true });
});

async function open(log: Log = silentLog): Promise<Journals> {
  const [journal, lostAndFound] = [join(directory, 'journal'), join(directory, 'lost')];
  journals = await openSqliteJournals({ journal, lostAndFound }, log);
  return journals;
}

/** Damages a body of many equal bytes in the closed database: the link between its first two overflow pages. */
function damage(letter: string): void {
  const file = join(directory, 'journal', 'state.db');
  const bytes = readFileSync(file);
  const pageBytes = bytes.readUInt16BE(16);
  const isFilled = (page: Buffer) => page.subarray(4).every((byte) => byte === letter.charCodeAt(0));
  for (let start = 0; start < bytes.length; start += pageBytes)
    if (isFilled(bytes.subarray(start, start + pageBytes))) {
      bytes.writeUInt32BE(0xffffff, start);
      writeFileSync(file, bytes);
      return;
    }
  throw new Error('the database has no such body');
}

test('a small body that the database cannot read leaves its reason, and neither comes back nor stops other writes', async () => {
  const first = await open();
  const [bad, good] = [Buffer.alloc(20_000, 'b'), Buffer.alloc(20_000, 'g')];
  await accept(await first.drive('d'), pendingWrite('bad', bad), bad);
  await accept(await first.drive('d'), pendingWrite('good', good), good);
  await first.close();
  damage('b');
  const drive = await (await open()).drive('d');
  await expect(bodyOf(drive, 'bad')).rejects.toThrow(StateUnwritable);
  const keptAt = await drive.lose(pendingWrite('bad', bad), 'refused');
  expect(readdirSync(join(directory, 'lost', 'd'))).toEqual([`${basename(keptAt)}.reason.txt`]);
  const report = readFileSync(`${keptAt}.reason.txt`, 'utf8');
  expect(report).toMatch(/there is no file with its bytes[\s\S]*refused; .* state\.db is damaged/);
  expect([(await drive.all()).map(({ id }) => id), drive.lostFiles]).toEqual([['good'], 1]);
  expect((await bodyOf(drive, 'good')).equals(good)).toBe(true);
  await drive.forget(['good']);
  await journals.close();
  expect(await (await (await open()).drive('d')).all()).toEqual([]);
});

test('writes are forgotten when the space that they leave cannot be freed, with a log line', async () => {
  const warnings: string[] = [];
  const log: Log = { ...silentLog, warn: (event) => void warnings.push(event) };
  const drive = await (await open(log)).drive('d');
  const bytes = pseudoRandomBytes(60_000, 1);
  const ids = Array.from({ length: 200 }, (_, index) => `${index}`);
  await Promise.all(ids.map((id) => accept(drive, pendingWrite(id, bytes), bytes)));
  const exec = Sqlite.prototype.exec;
  vi.spyOn(Sqlite.prototype, 'exec').mockImplementation(function (this: SqliteDatabase, sql) {
    if (sql === 'VACUUM') throw new Sqlite.SqliteError('disk I/O error', 'SQLITE_IOERR_READ');
    return exec.call(this, sql);
  });
  await drive.forget(ids);
  expect(await drive.all()).toEqual([]);
  expect(warnings).toEqual(["unused space of the journal's database could not be freed"]);
});
