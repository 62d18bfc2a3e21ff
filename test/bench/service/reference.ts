import { execFileSync } from 'node:child_process';
import { closeSync, fdatasyncSync, openSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { secondsOf } from './client.ts';

const MIB = 1024 * 1024;
const FLUSHES = 200;
/** Size of a page of PostgreSQL's log, in bytes. */
const PAGE_BYTES = 8192;

/** Returns what the disk and plain SQLite do, a line each: what the figures can be compared with. */
export async function referenceLines(
  home: string,
  { files, largeParts }: { readonly files: number; readonly largeParts: number },
): Promise<readonly string[]> {
  const { single, together } = await sqliteSpeed(home, files);
  const disk = await diskSpeed(home, largeParts * 4);
  return [
    `a write of 8 KiB with fdatasync: ${(await flushMs(home)).toFixed(2)} ms`,
    `dd with fsync: ${Math.round(disk)} MB/s`,
    `plain SQLite inserts of 1 KB: ${Math.round(single)}/s in one transaction each, ${Math.round(together)}/s in one`,
  ];
}

/** Returns the duration of a write at the end of a file and its flush, in ms. */
async function flushMs(home: string): Promise<number> {
  const path = join(home, 'flushed');
  const file = openSync(path, 'w');
  const page = Buffer.alloc(PAGE_BYTES, 1);
  const seconds = await secondsOf(() => {
    for (let number = 0; number < FLUSHES; number++) {
      writeSync(file, page);
      fdatasyncSync(file);
    }
  });
  closeSync(file);
  rmSync(path);
  return (seconds * 1000) / FLUSHES;
}

/** Returns the rate of `dd` with fsync, in MB/s. */
async function diskSpeed(home: string, blocks: number): Promise<number> {
  const file = join(home, 'dd.bin');
  const args = ['if=/dev/zero', `of=${file}`, 'bs=4M', `count=${blocks}`, 'conv=fsync'];
  const seconds = await secondsOf(() => execFileSync('dd', args, { stdio: 'ignore' }));
  rmSync(file);
  return (blocks * 4 * MIB) / seconds / 1e6;
}

/** The methods of SQLite that the benchmark uses. */
interface PlainDatabase {
  pragma(text: string): unknown;
  exec(sql: string): unknown;
  prepare(sql: string): { run(...values: unknown[]): unknown };
  transaction(work: () => void): () => void;
  close(): unknown;
}

/**
 * Returns the rate of plain SQLite with the service's settings, in rows a second: one transaction for each
 * row, and one for all.
 */
async function sqliteSpeed(home: string, rows: number): Promise<{ single: number; together: number }> {
  const { Sqlite } = (await import(new URL('../../src/util/sqlite/sqlite.js', import.meta.url).href)) as {
    Sqlite: new (file: string) => PlainDatabase;
  };
  const database = new Sqlite(join(home, 'plain.sqlite'));
  database.pragma('journal_mode = WAL');
  database.pragma('synchronous = FULL');
  database.exec('CREATE TABLE file (path TEXT PRIMARY KEY, bytes BLOB)');
  const insert = database.prepare('INSERT INTO file VALUES (?, ?)');
  const all = (prefix: string) => {
    for (let index = 0; index < rows; index++) insert.run(`${prefix}${index}`, Buffer.alloc(1000));
  };
  const single = rows / (await secondsOf(() => all('single')));
  const together = rows / (await secondsOf(database.transaction(() => all('together'))));
  database.close();
  return { single, together };
}
