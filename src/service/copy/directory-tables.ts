/** How PostgreSQL stores a column. SQLite has 0 and 1 for a boolean. */
type ColumnType = 'bigint' | 'text' | 'bytea' | 'boolean';

/** A table of the directory, which is the same with both drivers except for what is said here. */
export interface DirectoryTable {
  readonly name: string;
  /** All columns in PostgreSQL, in order. */
  readonly columns: Readonly<Record<string, ColumnType>>;
  /** Columns that are computed from others when they are read, by driver. */
  readonly computed?: Partial<Record<'sqlite' | 'postgres', Readonly<Record<string, string>>>>;
  /** Where they differ: the columns in SQLite, the column in PostgreSQL whose value each takes, and its SQL. */
  readonly inSqlite?: readonly { readonly column: string; readonly from: string; readonly value?: string }[];
  /** The column that PostgreSQL numbers itself. */
  readonly identity?: string;
}

/** All tables of the directory, those that others refer to first. */
export const DIRECTORY_TABLES: readonly DirectoryTable[] = [
  { name: 'teams', columns: { namespace: 'text', name: 'text' } },
  {
    name: 'accounts',
    columns: {
      account_id: 'text',
      namespace: 'text',
      team_namespace: 'text',
      home_path: 'text',
      email: 'text',
      given_name: 'text',
      surname: 'text',
      may_delete_permanently: 'boolean',
      limit_bytes: 'bigint',
      password_hash: 'bytea',
    },
  },
  { name: 'abandoned_homes', columns: { namespace: 'text' } },
  {
    name: 'apps',
    columns: {
      app_key: 'text',
      secret_hash: 'bytea',
      name: 'text',
      status: 'text',
      scopes: 'text',
      redirect_uris: 'text',
    },
  },
  {
    name: 'grants',
    columns: {
      grant_id: 'bigint',
      account_id: 'text',
      app_key: 'text',
      scopes: 'text',
      refresh_hash: 'bytea',
      created_ms: 'bigint',
      is_public: 'boolean',
    },
    // A consent of an old davgate has no time in SQLite.
    computed: { sqlite: { created_ms: 'coalesce(created_ms, 0)' } },
    identity: 'grant_id',
  },
  {
    name: 'access_tokens',
    columns: { token_hash: 'bytea', grant_id: 'bigint', scopes: 'text', expires_ms: 'bigint' },
  },
  {
    name: 'codes',
    columns: {
      code_hash: 'bytea',
      account_id: 'text',
      app_key: 'text',
      scopes: 'text',
      redirect_uri: 'text',
      challenge: 'text',
      challenge_method: 'text',
      is_offline: 'boolean',
      expires_ms: 'bigint',
      grant_id: 'bigint',
    },
  },
  {
    name: 'signed_in',
    columns: {
      id_hash: 'bytea',
      account_id: 'text',
      password_hash: 'bytea',
      signed_in_for: 'text',
      expires_ms: 'bigint',
    },
  },
  { name: 'guesses', columns: { guess_key: 'text', wrong: 'bigint', expires_ms: 'bigint' } },
  {
    name: 'links',
    columns: {
      sequence: 'bigint',
      token: 'text',
      rlkey: 'text',
      account_id: 'text',
      item_id: 'text',
      item_kind: 'text',
      visibility: 'text',
      password_hash: 'bytea',
      expires_ms: 'bigint',
      allow_download: 'boolean',
    },
    identity: 'sequence',
  },
  {
    name: 'temporary_links',
    columns: {
      token_hash: 'bytea',
      account_id: 'text',
      target: 'text',
      expires_ms: 'bigint',
      state: 'text',
    },
    computed: {
      sqlite: {
        account_id: "coalesce(json_extract(target, '$.accountId'), '')",
        state: "CASE used WHEN 0 THEN 'unused' WHEN 1 THEN 'used' ELSE 'claimed' END",
      },
    },
    inSqlite: [
      { column: 'token_hash', from: 'token_hash' },
      { column: 'target', from: 'target' },
      { column: 'expires_ms', from: 'expires_ms' },
      {
        column: 'used',
        from: 'state',
        value: "CASE ? WHEN 'unused' THEN 0 WHEN 'used' THEN 1 ELSE 2 END",
      },
    ],
  },
  {
    name: 'copy_references',
    columns: {
      sequence: 'bigint',
      reference: 'text',
      account_id: 'text',
      item_id: 'text',
      expires_ms: 'bigint',
    },
    identity: 'sequence',
  },
  {
    name: 'tags',
    columns: { sequence: 'bigint', account_id: 'text', item_id: 'text', tag_text: 'text' },
    identity: 'sequence',
  },
  { name: 'nodes', columns: { node_id: 'text', until_ms: 'bigint' } },
  {
    name: 'jobs',
    columns: {
      sequence: 'bigint',
      job_id: 'text',
      account_id: 'text',
      app_key: 'text',
      kind: 'text',
      node_id: 'text',
      ended_ms: 'bigint',
      entries_so_far: 'bigint',
      result: 'text',
      line: 'text',
    },
    identity: 'sequence',
  },
];
