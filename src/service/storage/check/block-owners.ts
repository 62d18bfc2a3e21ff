import type { SqliteDatabase } from '../../../util/sqlite/sqlite.ts';
import { revOf } from '../feed/ticks.ts';
import type { Damage, DamagedFile } from './damage.ts';

/** Maximum number of files that one damage names; further ones are only counted. */
const NAMED_MAX = 20;

interface OwnerRow {
  readonly namespace: string;
  readonly path: string;
  readonly number: number;
  readonly current: number;
  readonly live: number;
}

/** Finds the files and sessions of damaged contents and blocks. */
export class Owners {
  readonly #sql: ReturnType<typeof statements>;

  constructor(
    database: SqliteDatabase,
    private readonly directoryTag: string,
  ) {
    this.#sql = statements(database);
  }

  /** Returns the damage of a content, with the files that have it. */
  ofContent(what: string, content: number): Damage {
    const { count = 0 } = this.#sql.countOfContent.get(content) ?? {};
    return this.#damage(what, this.#sql.ofContent.all(content, NAMED_MAX), count);
  }

  /** Returns the damage of a block, with the files and upload sessions that reference it. */
  ofBlock(what: string, block: number): Damage[] {
    const sessions = this.#sql.sessions.all(block, NAMED_MAX);
    const { count = 0 } = this.#sql.countOfBlock.get(block) ?? {};
    const files = this.#damage(what, this.#sql.ofBlock.all(block, NAMED_MAX), count);
    const ofSessions = sessions.map(({ session, start }) => ({
      what: `${what} (from byte ${start} on of the unfinished upload session ${session})`,
      files: [],
      moreFiles: 0,
    }));
    return count > 0 || sessions.length === 0 ? [files, ...ofSessions] : ofSessions;
  }

  #damage(what: string, rows: readonly OwnerRow[], count: number): Damage {
    const files = rows.map((row) => this.#file(row));
    return { what, files, moreFiles: Math.max(0, count - files.length) };
  }

  #file({ namespace, path, number, current, live }: OwnerRow): DamagedFile {
    const state = current ? 'current' : live ? 'earlier' : 'deleted';
    return { namespace, path, rev: revOf(number, this.directoryTag), state };
  }
}

function statements(database: SqliteDatabase) {
  const select = `
    SELECT coalesce(namespace.name, '?') AS namespace, revision.path, revision.number,
      EXISTS (SELECT 1 FROM entry WHERE entry.ns = revision.ns AND entry.revision = revision.number) AS current,
      EXISTS (SELECT 1 FROM entry WHERE entry.ns = revision.ns AND entry.parent = revision.parent
        AND entry.name_key = revision.name_key) AS live
    FROM revision LEFT JOIN namespace ON namespace.id = revision.ns`;
  const withBlock = 'revision.content IN (SELECT content FROM content_block WHERE block = ?)';
  const page = 'ORDER BY current DESC, revision.number DESC LIMIT ?';
  return {
    ofContent: database.prepare<[number, number], OwnerRow>(`${select} WHERE revision.content = ? ${page}`),
    countOfContent: database.prepare<[number], { count: number }>(
      'SELECT count(*) AS count FROM revision WHERE content = ?',
    ),
    ofBlock: database.prepare<[number, number], OwnerRow>(`${select} WHERE ${withBlock} ${page}`),
    countOfBlock: database.prepare<[number], { count: number }>(
      `SELECT count(*) AS count FROM revision WHERE ${withBlock}`,
    ),
    sessions: database.prepare<[number, number], { session: string; start: number }>(
      'SELECT session, start FROM session_piece WHERE block = ? LIMIT ?',
    ),
  };
}
