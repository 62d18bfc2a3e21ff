import { chmodSync } from 'node:fs';
import { join } from 'node:path';
import { errorCodeOf } from '../../../util/error-code.ts';
import { makeFolder } from '../../../util/make-folder.ts';
import { type Migration, migrate, NewerSchema, schemaVersion } from '../../../util/sqlite/migrations.ts';
import { openSqlite, openSqliteToRead } from '../../../util/sqlite/open.ts';
import type { SqliteDatabase } from '../../../util/sqlite/sqlite.ts';
import { DataDirectoryError } from '../../storage/errors.ts';
import { expectFinished } from '../../storage/unfinished-copy.ts';

/** The database of accounts, apps, tokens and shared links; small, and separate from the files' metadata. */
export const ACCOUNTS_FILE = 'accounts.sqlite';

/** Steps that build the schema. */
const MIGRATIONS: readonly Migration[] = [
  `
  CREATE TABLE accounts (
    account_id TEXT PRIMARY KEY,
    namespace TEXT NOT NULL UNIQUE,
    email TEXT NOT NULL UNIQUE,
    given_name TEXT NOT NULL,
    surname TEXT NOT NULL,
    may_delete_permanently INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE apps (
    app_key TEXT PRIMARY KEY,
    secret_hash BLOB NOT NULL
  ) STRICT;
  -- One consent of an account to an app. Deleting it is how tokens are revoked.
  CREATE TABLE grants (
    grant_id INTEGER PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES accounts,
    app_key TEXT NOT NULL REFERENCES apps,
    scopes TEXT NOT NULL,
    refresh_hash BLOB UNIQUE
  ) STRICT;
  CREATE TABLE access_tokens (
    token_hash BLOB PRIMARY KEY,
    grant_id INTEGER NOT NULL REFERENCES grants ON DELETE CASCADE,
    scopes TEXT NOT NULL,
    expires_ms INTEGER
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX access_tokens_of_grant ON access_tokens (grant_id);
  CREATE INDEX access_tokens_by_expiry ON access_tokens (expires_ms);
  CREATE TABLE links (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    token TEXT NOT NULL UNIQUE,
    rlkey TEXT NOT NULL,
    account_id TEXT NOT NULL REFERENCES accounts,
    item_id TEXT NOT NULL,
    item_kind TEXT NOT NULL,
    visibility TEXT NOT NULL,
    password_hash BLOB,
    expires_ms INTEGER,
    allow_download INTEGER NOT NULL
  ) STRICT;
  CREATE UNIQUE INDEX links_of_item ON links (account_id, item_id);
  `,
  `
  -- Temporary permissions for anybody with the address. \`target\` is JSON.
  CREATE TABLE temporary_links (
    token_hash BLOB PRIMARY KEY,
    target TEXT NOT NULL,
    expires_ms INTEGER NOT NULL,
    used INTEGER NOT NULL DEFAULT 0
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX temporary_links_by_expiry ON temporary_links (expires_ms);
  `,
  `
  CREATE UNIQUE INDEX accounts_by_email ON accounts (email COLLATE NOCASE);
  ALTER TABLE accounts ADD COLUMN password_hash BLOB;
  -- NULL: the quota of the home.
  ALTER TABLE accounts ADD COLUMN limit_bytes INTEGER;
  -- The app of a database from before there were several is the operator's own.
  ALTER TABLE apps ADD COLUMN name TEXT NOT NULL DEFAULT 'davgate';
  ALTER TABLE apps ADD COLUMN status TEXT NOT NULL DEFAULT 'production';
  ALTER TABLE apps ADD COLUMN scopes TEXT NOT NULL DEFAULT 'account_info.read account_info.write files.metadata.read files.metadata.write files.content.read files.content.write files.permanent_delete sharing.read sharing.write';
  -- JSON list.
  ALTER TABLE apps ADD COLUMN redirect_uris TEXT NOT NULL DEFAULT '[]';
  ALTER TABLE grants ADD COLUMN created_ms INTEGER;
  -- Whether the app authenticated without its secret.
  ALTER TABLE grants ADD COLUMN is_public INTEGER NOT NULL DEFAULT 0;
  CREATE INDEX grants_of_app ON grants (app_key, account_id);
  -- A consent that its app has not exchanged yet; afterwards \`grant_id\` is the result.
  CREATE TABLE codes (
    code_hash BLOB PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES accounts,
    app_key TEXT NOT NULL REFERENCES apps,
    scopes TEXT NOT NULL,
    redirect_uri TEXT,
    challenge TEXT,
    challenge_method TEXT,
    is_offline INTEGER NOT NULL,
    expires_ms INTEGER NOT NULL,
    grant_id INTEGER REFERENCES grants ON DELETE CASCADE
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX codes_of_app ON codes (app_key, expires_ms);
  CREATE INDEX codes_by_expiry ON codes (expires_ms);
  CREATE INDEX codes_of_grant ON codes (grant_id);
  `,
  `
  -- Homes of removed accounts whose files have not been deleted yet.
  CREATE TABLE abandoned_homes (namespace TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
  `,
  `
  CREATE TABLE tags (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    account_id TEXT NOT NULL REFERENCES accounts,
    item_id TEXT NOT NULL,
    tag_text TEXT NOT NULL
  ) STRICT;
  CREATE UNIQUE INDEX tags_of_item ON tags (account_id, item_id, tag_text);
  -- A reference allows anybody who has it to copy the item. One per item.
  CREATE TABLE copy_references (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    reference TEXT NOT NULL UNIQUE,
    account_id TEXT NOT NULL REFERENCES accounts,
    item_id TEXT NOT NULL,
    expires_ms INTEGER NOT NULL
  ) STRICT;
  CREATE UNIQUE INDEX copy_references_of_item ON copy_references (account_id, item_id);
  `,
  `
  -- Teams. The space of a team is a namespace, and the home of a member is the folder home_path in it.
  CREATE TABLE teams (
    namespace TEXT PRIMARY KEY,
    name TEXT NOT NULL UNIQUE COLLATE NOCASE
  ) STRICT, WITHOUT ROWID;
  ALTER TABLE accounts ADD COLUMN team_namespace TEXT REFERENCES teams;
  ALTER TABLE accounts ADD COLUMN home_path TEXT;
  `,
  `
  -- Browsers that are signed in on the pages of /oauth2/authorize.
  CREATE TABLE signed_in (
    id_hash BLOB PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES accounts,
    password_hash BLOB NOT NULL,
    signed_in_for TEXT NOT NULL,
    expires_ms INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX signed_in_of_account ON signed_in (account_id);
  CREATE INDEX signed_in_by_expiry ON signed_in (expires_ms);
  `,
  `
  -- Processes that run jobs, and when their leases end.
  CREATE TABLE nodes (
    node_id TEXT PRIMARY KEY,
    until_ms INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE jobs (
    sequence INTEGER PRIMARY KEY,
    job_id TEXT NOT NULL UNIQUE,
    account_id TEXT NOT NULL REFERENCES accounts,
    app_key TEXT NOT NULL,
    kind TEXT NOT NULL,
    node_id TEXT NOT NULL,
    -- NULL until the result is stored.
    ended_ms INTEGER,
    -- Number of entries of all results stored up to this one.
    entries_so_far INTEGER,
    -- JSON; NULL for a job that failed.
    result TEXT
  ) STRICT;
  CREATE INDEX jobs_of_account ON jobs (account_id);
  CREATE INDEX jobs_by_end ON jobs (ended_ms);
  CREATE INDEX jobs_by_entries ON jobs (entries_so_far);
  `,
  `
  -- Wrong passwords. A key is a digest of a client, or of a client and the account or link.
  CREATE TABLE guesses (
    guess_key TEXT PRIMARY KEY,
    wrong INTEGER NOT NULL,
    expires_ms INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX guesses_by_expiry ON guesses (expires_ms);
  `,
  `
  -- Jobs of one account and line run in the order of their sequence; NULL for those that do not wait for each other.
  ALTER TABLE jobs ADD COLUMN line TEXT;
  CREATE INDEX jobs_in_line ON jobs (account_id, line, sequence) WHERE ended_ms IS NULL;
  `,
];

/**
 * Opens the accounts' database in `dataDirectory`, and creates it if missing. A service and a command may have it open
 * at the same time. Commits are on disk when they return. Throws `DataDirectoryError`.
 */
export function openDatabase(dataDirectory: string): SqliteDatabase {
  expectFinished(dataDirectory);
  return openUnchecked(dataDirectory);
}

/** Like `openDatabase`, also in the target of a copy. */
export function openUnchecked(dataDirectory: string): SqliteDatabase {
  const file = join(dataDirectory, ACCOUNTS_FILE);
  let database: SqliteDatabase | undefined;
  try {
    makeFolder(dataDirectory);
    database = openSqlite(file, { isShared: true });
    // Link keys are stored in clear text; a file of an older davgate may be readable by others.
    chmodSync(file, 0o600);
    // An up-to-date schema needs no write lock, which another process may hold.
    if (schemaVersion(database, MIGRATIONS) < MIGRATIONS.length) migrate(database, MIGRATIONS);
    return database;
  } catch (error) {
    database?.close();
    throw accountsFailure(error, file);
  }
}

/** Opens an existing accounts' database to read it, and says whether its schema is this program's. Throws `DataDirectoryError`. */
export function openDirectoryToRead(dataDirectory: string): {
  readonly database: SqliteDatabase;
  readonly isCurrent: boolean;
} {
  const file = join(dataDirectory, ACCOUNTS_FILE);
  let database: SqliteDatabase | undefined;
  try {
    database = openSqliteToRead(file, { isShared: true });
    database.pragma('query_only = ON');
    return { database, isCurrent: schemaVersion(database, MIGRATIONS) === MIGRATIONS.length };
  } catch (error) {
    database?.close();
    throw accountsFailure(error, file);
  }
}

/** Returns the error that tells the operator about a failure of the accounts' database; other errors unchanged. */
export function accountsFailure(failure: unknown, file: string): unknown {
  if (failure instanceof NewerSchema)
    return new DataDirectoryError(
      'newer',
      `${file} was written by a newer davgate (format ${failure.version}); start that version instead`,
    );
  const code = errorCodeOf(failure);
  if (!/^(SQLITE_(?!CONSTRAINT)|E[A-Z]+$)/.test(code)) return failure;
  const [reason, text] = code.startsWith('SQLITE_BUSY')
    ? (['in-use', 'is being written to by another process: try again'] as const)
    : code === 'SQLITE_NOTADB' || code.startsWith('SQLITE_CORRUPT')
      ? (['damaged', 'is damaged: restore it from a backup'] as const)
      : (['unusable', `cannot be used (${code}): check the folder and its permissions`] as const);
  return new DataDirectoryError(reason, `${file} ${text}`, { cause: failure });
}
