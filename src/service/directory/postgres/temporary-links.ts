import type { Pool } from 'pg';
import { hashOfSecret, newSecret } from '../../accounts/secrets.ts';
import { OVER_KEPT_MS, type TemporaryLinks, type TemporaryTarget } from '../../links/temporary-links.ts';
import { changesOf, deleteUnlocked, findRow } from '../../postgres/queries.ts';

type State = 'unused' | 'claimed' | 'used';

interface Row {
  readonly target: string;
  readonly expires_ms: number;
  readonly state: State;
}

/** Returns the temporary links in a database. */
export function temporaryLinksIn(pool: Pool): TemporaryLinks {
  async function find(secret: string, nowMs: number): Promise<TemporaryTarget | 'over' | undefined> {
    const row = await findRow<Row>(
      pool,
      'SELECT target, expires_ms, state FROM davgate.temporary_links WHERE token_hash = $1',
      hashOfSecret(secret),
    );
    if (!row) return undefined;
    if (row.state === 'used' || row.expires_ms <= nowMs) return 'over';
    // A cast, because only `add` writes this column.
    return JSON.parse(row.target) as TemporaryTarget;
  }

  /** Changes the state of a link. Returns false for one that another process has changed before. */
  async function change(secret: string, from: State, to: State): Promise<boolean> {
    const changes = await changesOf(
      pool,
      'UPDATE davgate.temporary_links SET state = $3 WHERE token_hash = $1 AND state = $2',
      hashOfSecret(secret),
      from,
      to,
    );
    return changes === 1;
  }

  return {
    async add(target, expiresMs) {
      const secret = newSecret();
      await pool.query(
        `INSERT INTO davgate.temporary_links (token_hash, account_id, target, expires_ms)
         VALUES ($1, $2, $3, $4)`,
        [hashOfSecret(secret), target.accountId, JSON.stringify(target), expiresMs],
      );
      return secret;
    },
    async download(secret, nowMs) {
      const target = await find(secret, nowMs);
      return target === 'over' || target?.kind === 'download' ? target : undefined;
    },
    async claimUpload(secret, nowMs) {
      const target = await find(secret, nowMs);
      if (target === 'over') return target;
      if (target?.kind !== 'upload') return undefined;
      return (await change(secret, 'unused', 'claimed')) ? target : 'claimed';
    },
    async release(secret) {
      await change(secret, 'claimed', 'unused');
    },
    async markUsed(secret) {
      await change(secret, 'claimed', 'used');
    },
    forgetOld: (nowMs, limit) =>
      deleteUnlocked(
        pool,
        {
          table: 'temporary_links',
          key: 'token_hash',
          condition: 'expires_ms < $1',
          values: [nowMs - OVER_KEPT_MS],
        },
        limit,
      ),
  };
}
