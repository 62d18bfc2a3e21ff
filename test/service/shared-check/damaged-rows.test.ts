import { describe, expect, test } from 'vitest';
import { type Checked, foundIn, sharedChecks } from './checked.ts';

const checked = sharedChecks();

/** SQL: the rows of a file. */
const SMALL = `name = 'small.txt'`;
const CONTENT = `(SELECT content FROM davgate.revision WHERE ${SMALL})`;

/** Returns lines without revs, ids and numbers of rows. */
function plain(lines: readonly string[]): string[] {
  return lines.map((line) => line.replace(/, rev \w+/g, '').replace(/[0-9a-f]{64}/g, 'HASH'));
}

describe('check of the rows in PostgreSQL', () => {
  test.each<[string, string, (checked: Checked) => unknown[]]>([
    [
      'with the id of another one',
      `UPDATE davgate.revision SET id = (SELECT id FROM davgate.entry WHERE name = 'photos') WHERE ${SMALL};
       UPDATE davgate.entry SET id = (SELECT id FROM davgate.entry WHERE name = 'photos') WHERE ${SMALL}`,
      ({ email }) => [`${email}:/photos: another entry has the same id`],
    ],
    [
      'of a folder that is missing',
      `DELETE FROM davgate.entry WHERE name = 'photos'`,
      ({ email }) => [`${email}:/photos/Large.jpg: its parent folder is missing`],
    ],
    [
      'with the change number of another one',
      `UPDATE davgate.entry SET seq = (SELECT seq FROM davgate.entry WHERE ${SMALL}) WHERE name = 'photos'`,
      ({ email }) => [`${email}:/photos: another entry has the same change number`],
    ],
    [
      'with another number than its revision',
      `UPDATE davgate.entry SET seq = seq + 1000000000 WHERE ${SMALL}`,
      ({ email }) => [
        `${email}:/small.txt: it differs from its revision`,
        `${email}:/small.txt: its last change is later than the last counted change`,
      ],
    ],
    [
      'whose key is not that of its path',
      `UPDATE davgate.entry SET place = '\\x00112233445566778899aabbccddeeff' WHERE ${SMALL}`,
      ({ email }) => [`${email}:/small.txt: its row in the table entry is not where its path says`],
    ],
    [
      'under another name',
      `UPDATE davgate.entry SET name_key = 'other.txt' WHERE ${SMALL}`,
      ({ email }) => [
        `${email}:/small.txt: its row in the table entry is not where its path says`,
        `${email}:/small.txt: it differs from its revision`,
        `${email}:/small.txt: it is not where its path says`,
      ],
    ],
    [
      'that is a second one of a path',
      `INSERT INTO davgate.entry SELECT ns, '\\x00112233445566778899aabbccddeeff', parent, name_key, name, path, id, seq,
         revision, returned, version FROM davgate.entry WHERE ${SMALL}`,
      ({ email }) => [`${email}:/small.txt: its row in the table entry is not where its path says`],
    ],
    [
      'that counts wrongly',
      `UPDATE davgate.holding SET revisions = 9 WHERE content = ${CONTENT}`,
      ({ email }) => [`${email}:/small.txt: the use count of its content is wrong`],
    ],
    [
      'that counts files wrongly',
      `UPDATE davgate.holding SET files = 0 WHERE content = ${CONTENT}`,
      ({ email }) => [`${email}:/small.txt: the file count of its content is wrong`],
    ],
    [
      'that sums up wrongly',
      'UPDATE davgate.namespace SET used_bytes = used_bytes + 1',
      ({ email }) => [`${email}:: its used space is wrong`],
    ],
    [
      'of the future, which every cursor is before',
      'UPDATE davgate.namespace SET horizon = 9000000000000000',
      ({ email }) => [`${email}:: cursors are refused: the history of changes begins in the future`],
    ],
    [
      'that is newer than the last commit',
      `UPDATE davgate.entry SET version = version + 1000 WHERE ${SMALL}`,
      ({ email }) => [`${email}:: a row of the table davgate.entry is newer than its last commit`],
    ],
    [
      'of the last commit that is missing',
      'DELETE FROM davgate.commit USING davgate.namespace WHERE ns = id AND commit.version = namespace.version',
      ({ email }) => [
        `${email}:: its last commit is not recorded: services load all of it after each change`,
      ],
    ],
    [
      'of a commit after the last one',
      `INSERT INTO davgate.commit (ns, version, mark, tables) SELECT id, version + 1, 'x', '{}' FROM davgate.namespace`,
      ({ email }) => [`${email}:: it has a commit after its last one: changes fail`],
    ],
    [
      'of a namespace that is missing',
      `UPDATE davgate.session SET ns = 77; UPDATE davgate.session_piece SET ns = 77`,
      ({ email }) => [
        'rows of the table davgate.session belong to the namespace number 77, which is missing',
        'rows of the table davgate.session_piece belong to the namespace number 77, which is missing',
        `${email}:: a block belongs to no file and no upload (it only takes space)`,
      ],
    ],
    [
      'without which no cursor can be checked',
      `DELETE FROM davgate.setting WHERE name = 'cursor-key'`,
      () => [expect.stringMatching(/^the tag of the service or the key of its cursors is missing/)],
    ],
    [
      'of a content that has another size than its blocks',
      `UPDATE davgate.content SET size = size + 1
       WHERE id = (SELECT content FROM davgate.revision WHERE path = '/deleted.txt')`,
      ({ email }) => [
        `${email}:/deleted.txt (deleted): its blocks do not have its size`,
        `${email}:: its used space is wrong`,
      ],
    ],
    [
      'of a content with another hash than its blocks',
      `UPDATE davgate.content SET hash = 'beef' || substr(hash, 5) WHERE id = ${CONTENT}`,
      ({ email }) => [`${email}:/small.txt (current): its content hash is not that of its blocks`],
    ],
    [
      'that is null',
      `ALTER TABLE davgate.entry ALTER COLUMN id DROP NOT NULL; UPDATE davgate.entry SET id = NULL WHERE ${SMALL}`,
      ({ email }) => [
        expect.stringMatching(
          new RegExp(`^${email}:/small.txt: its row in the table entry .* cannot be used: NOT NULL`),
        ),
        `${email}:/small.txt: the file count of its content is wrong`,
      ],
    ],
    [
      'of another type',
      `ALTER TABLE davgate.revision ALTER COLUMN client_ms TYPE text USING 'soon'`,
      ({ email }) => [
        expect.stringMatching(
          new RegExp(`^${email}:/.*: its row in the table revision .* cannot be used: cannot store TEXT`),
        ),
      ],
    ],
  ])('a check tells of a row %s', async (_, sql, expected) => {
    const data = await checked();
    await data.sql(sql);
    const lines = plain(await foundIn(data));
    expect(lines).toEqual(expect.arrayContaining(expected(data)));
    // A row that cannot be loaded is missing in other places too.
    if (!lines.some((line) => line.includes('cannot be used')))
      expect(lines).toHaveLength(expected(data).length);
  });

  test('a check tells of a missing revision, content and block list by the paths of the files', async () => {
    const data = await checked();
    await data.sql(`DELETE FROM davgate.revision WHERE ${SMALL}`);
    await data.sql(`DELETE FROM davgate.content WHERE id = (
      SELECT content FROM davgate.revision WHERE path = '/deleted.txt')`);
    await data.sql(`DELETE FROM davgate.content_block WHERE position = 0 AND content = (
      SELECT content FROM davgate.revision WHERE path = '/photos/Large.jpg' ORDER BY number DESC LIMIT 1)`);
    const lines = plain(await foundIn(data));
    expect(lines).toContain(`${data.email}:/small.txt: its revision is missing`);
    expect(lines).toContain(`${data.email}:/deleted.txt: the content of one of its revisions is missing`);
    expect(lines).toContain(
      `${data.email}:/photos/Large.jpg (current): one of its blocks is missing from its list`,
    );
  });

  test.each(['holding', 'block_name', 'setting', 'accounts', 'schema', 'lease'])(
    'a check tells of the missing table %s',
    async (table) => {
      const data = await checked();
      await data.sql(`DROP TABLE davgate.${table} CASCADE`);
      expect(await foundIn(data)).toEqual([
        `the database has lost its table davgate.${table}: its rows cannot be checked`,
      ]);
    },
  );

  test('a check tells of a missing column, and ends', async () => {
    const data = await checked();
    await data.sql('ALTER TABLE davgate.entry DROP COLUMN seq');
    expect(await foundIn(data)).toEqual([
      'the database has lost its column seq of the table davgate.entry: its rows cannot be checked',
    ]);
  });

  test('a check of a database without a service, or of another version, is refused', async () => {
    const data = await checked();
    await data.sql('UPDATE davgate.schema SET version = version + 1');
    await expect(foundIn(data)).rejects.toMatchObject({ name: 'PostgresError', reason: 'newer' });
    await data.sql('DROP SCHEMA davgate CASCADE');
    await expect(foundIn(data)).rejects.toThrow(/contains no storage service: check its address/);
  });
});
