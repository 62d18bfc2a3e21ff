import type { SqliteDatabase } from '../../util/sqlite/sqlite.ts';
import type { UploadLink, UploadLinkStore, UsedUploadLink } from '../upload-links.ts';
import type { Commits } from './commits.ts';

/** A link as JSON: only its keys and its used bytes are asked for. */
interface Row {
  readonly text: string;
  readonly usedBytes: number;
}

/** Upload links, in a table. */
export function sqliteUploadLinks(database: SqliteDatabase, commits: Commits): UploadLinkStore {
  const all = database.prepare<[string], Row>(
    'SELECT text, used_bytes AS usedBytes FROM upload_links WHERE user = ? ORDER BY position',
  );
  const find = database.prepare<[string], Row>(
    'SELECT text, used_bytes AS usedBytes FROM upload_links WHERE token_hash = ?',
  );
  const count = database.prepare<[string], { readonly count: number }>(
    'SELECT count(*) AS count FROM upload_links WHERE user = ?',
  );
  const add = database.prepare(
    'INSERT INTO upload_links (user, id, token_hash, text, used_bytes) VALUES (@user, @id, @tokenHash, @text, 0)',
  );
  const use = database.prepare(
    `UPDATE upload_links SET used_bytes = used_bytes + @bytes
     WHERE token_hash = @tokenHash AND (@max IS NULL OR used_bytes + @bytes <= @max)`,
  );
  const takeBack = database.prepare<[number, string]>(
    'UPDATE upload_links SET used_bytes = max(0, used_bytes - ?) WHERE token_hash = ?',
  );
  const remove = database.prepare<[string, string]>('DELETE FROM upload_links WHERE user = ? AND id = ?');
  return {
    all: async (user) => all.all(user).map(linkOf),
    async find(tokenHash) {
      const row = find.get(tokenHash);
      return row && linkOf(row);
    },
    add: (link, countMax) =>
      commits.run(() => {
        const { user, id, tokenHash } = link;
        if ((count.get(user)?.count ?? 0) >= countMax) return false;
        add.run({ user, id, tokenHash, text: JSON.stringify(link) });
        return true;
      }),
    use: ({ tokenHash, sizeBytesMax }, bytes) =>
      commits.run(
        () => use.run({ bytes, tokenHash, max: sizeBytesMax ?? null }).changes > 0,
        'process-crash',
      ),
    takeBack: ({ tokenHash }, bytes) =>
      commits.run(() => void takeBack.run(bytes, tokenHash), 'process-crash'),
    remove: (user, id) => commits.run(() => remove.run(user, id).changes > 0),
  };
}

function linkOf({ text, usedBytes }: Row): UsedUploadLink {
  const link: UploadLink = JSON.parse(text); // as `add` wrote it
  return { ...link, usedBytes };
}
