/**
 * Steps that build the tables. Texts that are compared or sorted have the collation "C": the order of their bytes, on
 * every server. The tables of one step are in the order of their references.
 */
export const MIGRATIONS: readonly string[] = [
  `
  -- The space of a team is a namespace, and the home of a member is the folder home_path in it.
  CREATE TABLE davgate.teams (
    namespace text COLLATE "C" PRIMARY KEY,
    name text COLLATE "C" NOT NULL
  );
  -- In the collation "C", lower() changes A to Z alone, as SQLite's NOCASE does: addresses and names with other letters
  -- are the same accounts and teams with both drivers.
  CREATE UNIQUE INDEX teams_by_name ON davgate.teams (lower(name));

  CREATE TABLE davgate.accounts (
    account_id text COLLATE "C" PRIMARY KEY,
    namespace text COLLATE "C" NOT NULL UNIQUE,
    team_namespace text COLLATE "C" REFERENCES davgate.teams,
    home_path text COLLATE "C",
    email text COLLATE "C" NOT NULL,
    given_name text NOT NULL,
    surname text NOT NULL,
    may_delete_permanently boolean NOT NULL,
    -- NULL: the quota of the home.
    limit_bytes bigint,
    password_hash bytea
  );
  CREATE UNIQUE INDEX accounts_by_email ON davgate.accounts (lower(email));
  CREATE INDEX accounts_of_team ON davgate.accounts (team_namespace);

  -- Homes of removed accounts whose files have not been deleted yet.
  CREATE TABLE davgate.abandoned_homes (namespace text COLLATE "C" PRIMARY KEY);

  CREATE TABLE davgate.apps (
    app_key text COLLATE "C" PRIMARY KEY,
    secret_hash bytea NOT NULL,
    name text COLLATE "C" NOT NULL,
    status text COLLATE "C" NOT NULL,
    scopes text NOT NULL,
    -- JSON list.
    redirect_uris text NOT NULL
  );

  -- One consent of an account to an app. Deleting it is how tokens are revoked.
  CREATE TABLE davgate.grants (
    grant_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account_id text COLLATE "C" NOT NULL REFERENCES davgate.accounts,
    app_key text COLLATE "C" NOT NULL REFERENCES davgate.apps,
    scopes text NOT NULL,
    refresh_hash bytea UNIQUE,
    created_ms bigint NOT NULL,
    -- Whether the app authenticated without its secret.
    is_public boolean NOT NULL
  );
  CREATE INDEX grants_of_app ON davgate.grants (app_key, account_id);
  CREATE INDEX grants_of_account ON davgate.grants (account_id, app_key);

  CREATE TABLE davgate.access_tokens (
    token_hash bytea PRIMARY KEY,
    grant_id bigint NOT NULL REFERENCES davgate.grants ON DELETE CASCADE,
    scopes text NOT NULL,
    expires_ms bigint
  );
  CREATE INDEX access_tokens_of_grant ON davgate.access_tokens (grant_id);
  CREATE INDEX access_tokens_by_expiry ON davgate.access_tokens (expires_ms);

  -- A consent that its app has not exchanged yet; afterwards grant_id is the result.
  CREATE TABLE davgate.codes (
    code_hash bytea PRIMARY KEY,
    account_id text COLLATE "C" NOT NULL REFERENCES davgate.accounts,
    app_key text COLLATE "C" NOT NULL REFERENCES davgate.apps,
    scopes text NOT NULL,
    redirect_uri text COLLATE "C",
    challenge text COLLATE "C",
    challenge_method text COLLATE "C",
    is_offline boolean NOT NULL,
    expires_ms bigint NOT NULL,
    grant_id bigint REFERENCES davgate.grants ON DELETE CASCADE
  );
  CREATE INDEX codes_of_account ON davgate.codes (account_id);
  CREATE INDEX codes_of_app ON davgate.codes (app_key, expires_ms);
  CREATE INDEX codes_by_expiry ON davgate.codes (expires_ms);
  CREATE INDEX codes_of_grant ON davgate.codes (grant_id);

  -- Browsers that are signed in on the pages of /oauth2/authorize.
  CREATE TABLE davgate.signed_in (
    id_hash bytea PRIMARY KEY,
    account_id text COLLATE "C" NOT NULL REFERENCES davgate.accounts,
    password_hash bytea NOT NULL,
    signed_in_for text NOT NULL,
    expires_ms bigint NOT NULL
  );
  CREATE INDEX signed_in_of_account ON davgate.signed_in (account_id);
  CREATE INDEX signed_in_by_expiry ON davgate.signed_in (expires_ms, id_hash);

  -- Wrong passwords. A key is a digest of a client, or of a client and the account or link.
  CREATE TABLE davgate.guesses (
    guess_key text COLLATE "C" PRIMARY KEY,
    wrong integer NOT NULL,
    expires_ms bigint NOT NULL
  );
  CREATE INDEX guesses_by_expiry ON davgate.guesses (expires_ms);

  CREATE TABLE davgate.links (
    sequence bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    token text COLLATE "C" NOT NULL UNIQUE,
    rlkey text COLLATE "C" NOT NULL,
    account_id text COLLATE "C" NOT NULL REFERENCES davgate.accounts,
    item_id text COLLATE "C" NOT NULL,
    item_kind text COLLATE "C" NOT NULL,
    visibility text COLLATE "C" NOT NULL,
    password_hash bytea,
    expires_ms bigint,
    allow_download boolean NOT NULL,
    UNIQUE (account_id, item_id)
  );
  CREATE INDEX links_of_account ON davgate.links (account_id, sequence);
  CREATE INDEX links_by_expiry ON davgate.links (expires_ms);

  -- Temporary permissions for anybody with the address. target is JSON, as text: jsonb refuses U+0000.
  CREATE TABLE davgate.temporary_links (
    token_hash bytea PRIMARY KEY,
    account_id text COLLATE "C" NOT NULL,
    target text NOT NULL,
    expires_ms bigint NOT NULL,
    state text COLLATE "C" NOT NULL DEFAULT 'unused'
  );
  CREATE INDEX temporary_links_of_account ON davgate.temporary_links (account_id);
  CREATE INDEX temporary_links_by_expiry ON davgate.temporary_links (expires_ms);

  -- A reference allows anybody who has it to copy the item. One per item.
  CREATE TABLE davgate.copy_references (
    sequence bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    reference text COLLATE "C" NOT NULL UNIQUE,
    account_id text COLLATE "C" NOT NULL REFERENCES davgate.accounts,
    item_id text COLLATE "C" NOT NULL,
    expires_ms bigint NOT NULL,
    UNIQUE (account_id, item_id)
  );

  CREATE TABLE davgate.tags (
    sequence bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account_id text COLLATE "C" NOT NULL REFERENCES davgate.accounts,
    item_id text COLLATE "C" NOT NULL,
    tag_text text COLLATE "C" NOT NULL,
    UNIQUE (account_id, item_id, tag_text)
  );

  -- Processes that run jobs, and when their leases end.
  CREATE TABLE davgate.nodes (
    node_id text COLLATE "C" PRIMARY KEY,
    until_ms bigint NOT NULL
  );
  CREATE INDEX nodes_by_end ON davgate.nodes (until_ms);

  CREATE TABLE davgate.jobs (
    sequence bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job_id text COLLATE "C" NOT NULL UNIQUE,
    account_id text COLLATE "C" NOT NULL REFERENCES davgate.accounts,
    app_key text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    node_id text COLLATE "C" NOT NULL,
    -- NULL until the result is stored.
    ended_ms bigint,
    -- Number of entries of all results stored up to this one.
    entries_so_far bigint,
    -- JSON; NULL for a job that failed.
    result text
  );
  CREATE INDEX jobs_of_account ON davgate.jobs (account_id);
  CREATE INDEX jobs_by_end ON davgate.jobs (ended_ms);
  CREATE INDEX jobs_by_entries ON davgate.jobs (entries_so_far);
  -- The number of entries of all results ever stored, in one row, whose lock gives the results an order.
  CREATE TABLE davgate.stored_entries (entries bigint NOT NULL);
  INSERT INTO davgate.stored_entries VALUES (0);
  `,
  `
  -- Jobs of one account and line run in the order of their sequence; NULL for those that do not wait for each other.
  ALTER TABLE davgate.jobs ADD COLUMN line text COLLATE "C";
  CREATE INDEX jobs_in_line ON davgate.jobs (account_id, line, sequence) WHERE ended_ms IS NULL;
  `,
];
