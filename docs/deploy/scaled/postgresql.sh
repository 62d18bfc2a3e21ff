#!/bin/sh
# Prepares the primary of PostgreSQL for davgate and a standby. The image postgres runs it once, and so does try.sh.
# DATABASE_PASSWORD is the password of both roles. From the end on, a commit is acknowledged when the standby has it.
set -eu
echo 'host replication standby all scram-sha-256' >> "$PGDATA/pg_hba.conf"
psql --quiet --no-psqlrc -v ON_ERROR_STOP=1 -v password="$DATABASE_PASSWORD" -U postgres -d postgres <<'SQL'
CREATE ROLE davgate LOGIN PASSWORD :'password';
CREATE ROLE standby LOGIN REPLICATION PASSWORD :'password';
CREATE DATABASE davgate OWNER davgate;
ALTER SYSTEM SET synchronous_standby_names = 'standby';
-- How long a standby may be away and still go on, in bytes of changes.
ALTER SYSTEM SET wal_keep_size = '1GB';
SELECT pg_reload_conf() \g /dev/null
SQL
