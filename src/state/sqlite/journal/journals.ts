import { join } from 'node:path';
import type { Log } from '../../../util/log.ts';
import type { Path } from '../../../util/path.ts';
import type { SqliteDatabase } from '../../../util/sqlite/sqlite.ts';
import { asFull } from '../../disk-room.ts';
import { StateUnwritable } from '../../errors.ts';
import {
  BodyGone,
  type Journal,
  JournalFull,
  type Journals,
  type LostWrite,
  type PendingWrite,
} from '../../journal.ts';
import { Commits } from '../commits.ts';
import { asStateError, hasDatabase, openDatabase } from '../state-database.ts';
import { Bodies, lastingNameOf, type Staged } from './bodies.ts';
import { folderName } from './folder-name.ts';
import { LostAndFound, type LostBody } from './lost-and-found.ts';
import { JOURNAL_MIGRATIONS } from './migrations.ts';
import { journalOwners } from './owners.ts';
import { sweepBodies } from './sweep.ts';

export interface JournalDirectories {
  /** Directory of the journal itself. */
  readonly journal: string;
  /** Directory of the files that the service refused; each drive has a folder in it. */
  readonly lostAndFound: string;
}

/**
 * Opens the journals in a database of their own, with files beside it. One process at a time. Throws `StateInUse`,
 * `StateUnwritable`.
 */
export async function openSqliteJournals(directories: JournalDirectories, log: Log): Promise<Journals> {
  const isNew = !hasDatabase(directories.journal);
  const database = openDatabase(directories.journal, JOURNAL_MIGRATIONS, log);
  try {
    reserveRoom(database);
    shrink(database);
    const bodiesDirectory = join(directories.journal, 'bodies');
    const { lostAndFound } = directories;
    await sweepBodies({ database, isNew, bodies: bodiesDirectory, lostAndFound, log });
    const commits = new Commits(database, directories.journal);
    return {
      owners: journalOwners(database, commits),
      async drive(name) {
        const bodies = await Bodies.open(join(bodiesDirectory, folderName(name)));
        const lost = await LostAndFound.open(join(directories.lostAndFound, folderName(name)));
        const { journal: directory } = directories;
        return new SqliteJournal(name, { database, directory, commits, bodies, lost, log });
      },
      async close() {
        commits.close();
        database.close();
      },
    };
  } catch (error) {
    database.close();
    throw asStateError(error, directories.journal);
  }
}

/** Maximum unused space that the database keeps for later bodies, in bytes. */
const SPARE_BYTES_MAX = 8 * 1024 * 1024;

/** Frees unused space if there is much. Its cost is the remaining content: little once all writes have been sent. */
function shrink(database: SqliteDatabase): void {
  const [pages, bytes] = ['freelist_count', 'page_size'].map((name) =>
    Number(database.pragma(name, { simple: true })),
  );
  if ((pages ?? 0) * (bytes ?? 0) <= SPARE_BYTES_MAX) return;
  orNoRoom(() => database.exec('VACUUM'));
  reserveRoom(database);
}

/** More than the log's maximum size, 4 MiB, after which its content moves to the database, in bytes. */
const LOG_BYTES = 6 * 1024 * 1024;

/**
 * Makes log and database large enough in advance: on a full disk, writes that have been sent can then still be removed.
 */
function reserveRoom(database: SqliteDatabase): void {
  orNoRoom(() => {
    database.exec('DROP TABLE IF EXISTS ballast; CREATE TABLE ballast (bytes BLOB)');
    database.exec(`INSERT INTO ballast VALUES (zeroblob(${LOG_BYTES}))`);
    database.exec('DROP TABLE ballast');
    database.pragma('wal_checkpoint(RESTART)');
  });
}

/** Runs optional work, which is skipped on a full disk. */
function orNoRoom(work: () => void): void {
  try {
    work();
  } catch (error) {
    if (!(asFull(error) instanceof JournalFull)) throw error;
  }
}

interface JournalDeps {
  readonly database: SqliteDatabase;
  /** Directory of the database. */
  readonly directory: string;
  readonly commits: Commits;
  readonly bodies: Bodies;
  readonly lost: LostAndFound;
  readonly log: Log;
}

/**
 * The drive of writes whose bodies the database cannot read. Their rows stay, because SQLite reads a body to delete it. A
 * drive's own name has no line break.
 */
const UNREADABLE = '\nunreadable';

interface Row extends Omit<PendingWrite, 'path' | 'replaces' | 'replacesHash' | 'folderId'> {
  readonly path: string;
  readonly replaces: string | null;
  readonly replacesHash: string | null;
  readonly folderId: string | null;
}

class SqliteJournal implements Journal {
  readonly #statements: ReturnType<typeof prepare>;
  /** Removed files that the table of dropped files still names. */
  readonly #gone: string[] = [];

  constructor(
    private readonly name: string,
    private readonly deps: JournalDeps,
  ) {
    this.#statements = prepare(deps.database);
  }

  async all(): Promise<readonly PendingWrite[]> {
    return this.#read(() => this.#statements.all.all(this.name).map(writeOf));
  }

  stage(body: AsyncIterable<Uint8Array>): Promise<Staged> {
    return this.deps.bodies.stage(body);
  }

  discard(body: Staged): Promise<void> {
    return this.deps.bodies.discard(body);
  }

  async accept(write: PendingWrite, { small, file: staged }: Staged, supersedes?: string): Promise<void> {
    const { bodies } = this.deps;
    const { insert, insertSmall } = this.#statements;
    const file = staged === undefined ? undefined : lastingNameOf(staged, write);
    const superseded = await this.#run(() => {
      const { lastInsertRowid } = insert.run({ ...rowOf(write), drive: this.name, file: file ?? null });
      if (small) insertSmall.run(lastInsertRowid, small);
      return supersedes === undefined ? [] : this.#drop([supersedes]);
    });
    // After its record and before the acknowledgement: a lasting name means that the body was acknowledged, or soon is.
    if (file !== undefined) await bodies.settle(file);
    await this.#removeBodies(superseded);
  }

  async change(write: PendingWrite): Promise<void> {
    await this.#run(() => this.#update([write]));
  }

  async forget(ids: readonly string[], changed: readonly PendingWrite[] = []): Promise<void> {
    const files = await this.#run(() => {
      this.#update(changed);
      return this.#drop(ids);
    });
    await this.#removeBodies(files);
    this.#shrink();
  }

  async *read(
    id: string,
    range?: { readonly start: number; readonly end: number },
  ): AsyncIterable<Uint8Array> {
    const file = this.#fileOf(id);
    if (file !== undefined) return yield* this.deps.bodies.read(file, range);
    const small = this.#smallOf(id);
    yield range ? small.subarray(range.start, range.end) : small;
  }

  get lostFiles(): number {
    return this.deps.lost.count;
  }

  lost(): Promise<readonly LostWrite[]> {
    return this.deps.lost.list();
  }

  readLost(name: string): AsyncIterable<Uint8Array> {
    return this.deps.lost.read(name);
  }

  dropLost(name: string): Promise<void> {
    return this.deps.lost.drop(name);
  }

  async lose(write: PendingWrite, reason: string): Promise<string> {
    const { lost } = this.deps;
    const body = this.#bodyOf(write.id);
    if (body instanceof StateUnwritable) return this.#loseUnreadable(write, `${reason}; ${body.message}`);
    const path = await lost.keep(this.name, write, body, reason);
    await this.forget([write.id]);
    return path;
  }

  /** Keeps the reason alone. What is left of the body stays in the database. */
  async #loseUnreadable(write: PendingWrite, reason: string): Promise<string> {
    const path = await this.deps.lost.keep(this.name, write, undefined, reason);
    await this.#run(() => this.#statements.setAside.run(UNREADABLE, write.id));
    return path;
  }

  /** Returns the body of a write, or why the database cannot read it. */
  #bodyOf(id: string): LostBody | StateUnwritable {
    const file = this.#fileOf(id);
    if (file !== undefined) return { file: this.deps.bodies.pathOf(file) };
    try {
      return { bytes: this.#smallOf(id) };
    } catch (error) {
      if (error instanceof StateUnwritable) return error;
      throw error;
    }
  }

  /** Returns the name of the file with the body of a write; `undefined` when the body is in the database. */
  #fileOf(id: string): string | undefined {
    const row = this.#read(() => this.#statements.file.get(id));
    if (!row) throw new BodyGone(`there is no pending write ${id}`);
    return row.file ?? undefined;
  }

  #smallOf(id: string): Buffer {
    const row = this.#read(() => this.#statements.small.get(id));
    // A body whose row is missing counts as damaged: its checksum differs.
    return row?.small ?? Buffer.alloc(0);
  }

  /** Frees unused space once all writes have been sent. Must not fail, because the writes are removed already. */
  #shrink(): void {
    const { database, directory, log } = this.deps;
    try {
      if (this.#statements.any.get() === undefined) shrink(database);
    } catch (error) {
      log.warn("unused space of the journal's database could not be freed", {
        directory,
        reason: String(error),
      });
    }
  }

  #update(writes: readonly PendingWrite[]): void {
    for (const write of writes) this.#statements.update.run(rowOf(write));
  }

  /** Removes rows of writes. Returns the files of their bodies, which may be deleted once this is on disk. */
  #drop(ids: readonly string[]): string[] {
    const { file: fileOf, remove, insertDropped, removeDropped } = this.#statements;
    const files = ids.flatMap((id) => fileOf.get(id)?.file ?? []);
    for (const id of ids) remove.run(id);
    for (const file of files) insertDropped.run(file, this.name);
    for (const file of this.#gone.splice(0)) removeDropped.run(file);
    return files;
  }

  /** Removes files. The next start removes those that fail. */
  async #removeBodies(files: readonly string[]): Promise<void> {
    for (const file of await this.deps.bodies.remove(files)) this.#gone.push(file);
  }

  #read<T>(query: () => T): T {
    try {
      return query();
    } catch (error) {
      throw asStateError(error, this.deps.directory);
    }
  }

  async #run<T>(change: () => T): Promise<T> {
    try {
      return await this.deps.commits.run(change);
    } catch (error) {
      throw asFull(error);
    }
  }
}

/** Columns under the names of `PendingWrite`. */
const COLUMNS = `id, path, file_id AS fileId, size_bytes AS sizeBytes, content_hash AS contentHash,
  modified_ms AS modifiedMs, accepted_ms AS acceptedMs, due_ms AS dueMs, replaces,
  replaces_hash AS replacesHash, folder_id AS folderId`;

function prepare(database: SqliteDatabase) {
  return {
    all: database.prepare<[string], Row>(`SELECT ${COLUMNS} FROM writes WHERE drive = ? ORDER BY position`),
    any: database.prepare('SELECT 1 FROM writes LIMIT 1'),
    file: database.prepare<[string], { file: string | null }>(
      'SELECT body_file AS file FROM writes WHERE id = ?',
    ),
    small: database.prepare<[string], { small: Buffer }>(
      'SELECT body AS small FROM writes JOIN small_bodies USING (position) WHERE id = ?',
    ),
    insert: database.prepare(
      `INSERT INTO writes (drive, id, path, file_id, size_bytes, content_hash, modified_ms, accepted_ms, due_ms,
         replaces, replaces_hash, folder_id, body_file)
       VALUES (@drive, @id, @path, @fileId, @sizeBytes, @contentHash, @modifiedMs, @acceptedMs, @dueMs,
         @replaces, @replacesHash, @folderId, @file)`,
    ),
    insertSmall: database.prepare('INSERT INTO small_bodies (position, body) VALUES (?, ?)'),
    update: database.prepare(
      `UPDATE writes SET path = @path, file_id = @fileId, modified_ms = @modifiedMs, due_ms = @dueMs,
         replaces = @replaces, replaces_hash = @replacesHash WHERE id = @id`,
    ),
    setAside: database.prepare('UPDATE writes SET drive = ? WHERE id = ?'),
    remove: database.prepare('DELETE FROM writes WHERE id = ?'),
    insertDropped: database.prepare('INSERT OR REPLACE INTO dropped_bodies (file, drive) VALUES (?, ?)'),
    removeDropped: database.prepare('DELETE FROM dropped_bodies WHERE file = ?'),
  };
}

function rowOf(write: PendingWrite): Row {
  return {
    ...write,
    replaces: write.replaces ?? null,
    replacesHash: write.replacesHash ?? null,
    folderId: write.folderId ?? null,
  };
}

function writeOf(row: Row): PendingWrite {
  // Only validated paths are ever written.
  return {
    ...row,
    path: row.path as Path,
    replaces: row.replaces ?? undefined,
    replacesHash: row.replacesHash ?? undefined,
    folderId: row.folderId ?? undefined,
  };
}
