import { createHash } from 'node:crypto';
import { mkdtemp, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type CheckLine, type CheckProgress, checkService } from '../../src/service/admin/check.ts';
import { Sqlite } from '../../src/util/sqlite/sqlite.ts';
import { pseudoRandomBytes } from '../support/bytes.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { download, put, rpc, upload } from '../support/service-client.ts';

/** Content of two blocks, both in files. */
const LARGE = pseudoRandomBytes(4 * 1024 * 1024 + 100_000, 1);
const SECOND_BLOCK = LARGE.subarray(4 * 1024 * 1024);

let dataDirectory: string;
let service: TestService;
let email: string;

beforeEach(async () => {
  dataDirectory = await mkdtemp(join(tmpdir(), 'davgate-check-'));
  service = await startTestService({ dataDirectory });
  await put(service, '/photos/Large.jpg', 'an earlier text');
  await put(service, '/photos/Large.jpg', LARGE);
  await put(service, '/small.txt', 'small');
  await put(service, '/deleted.txt', 'deleted text');
  await rpc(service, 'files/delete_v2', { path: '/deleted.txt' });
  await upload(service, 'files/upload_session/start', {}, { body: pseudoRandomBytes(70_000, 2) });
  email = ((await rpc(service, 'users/get_current_account', null)).json as { email: string }).email;
});
afterEach(async () => {
  await service.close();
  await rm(dataDirectory, { recursive: true });
});

async function found(onProgress: (progress: CheckProgress) => void = () => {}): Promise<string[]> {
  await service.close();
  const lines: string[] = [];
  for await (const { text } of checkService({ dataDirectory }, onProgress)) lines.push(text);
  return lines;
}

const blockFile = (bytes: Uint8Array) =>
  join(dataDirectory, 'blocks', createHash('sha256').update(bytes).digest('hex'));

/** Closes the service and changes rows of its database. */
async function corrupt(sql: string): Promise<void> {
  await service.close();
  const database = new Sqlite(join(dataDirectory, 'storage.sqlite'));
  database.pragma('foreign_keys = OFF');
  database.exec(sql);
  database.close();
}

async function flipByte(file: string): Promise<void> {
  const bytes = await readFile(file);
  bytes[777] = (bytes[777] ?? 0) ^ 1;
  await writeFile(file, bytes);
}

test('a check of a sound data directory reports nothing and reads every byte', async () => {
  let last: CheckProgress | undefined;
  expect(
    await found((progress) => {
      last = progress;
    }),
  ).toEqual([]);
  const bytes = LARGE.length + 'an earlier text'.length + 'small'.length + 'deleted text'.length + 70_000;
  expect(last).toEqual({ blocks: 6, totalBlocks: 6, bytes, totalBytes: bytes });
});

describe('check of blocks', () => {
  const ofLarge = (why: string) => [
    expect.stringMatching(
      new RegExp(
        `^${email}:/photos/Large\\.jpg \\(current, rev [0-9a-f]{22}\\): block [0-9a-f]{64}: ${why}$`,
      ),
    ),
  ];

  test('a check reports a changed block with the path of its file', async () => {
    await flipByte(blockFile(SECOND_BLOCK));
    expect(await found()).toEqual(ofLarge('its bytes have changed'));
  });

  test('a check reports a missing block with the path of its file', async () => {
    await rm(blockFile(SECOND_BLOCK));
    expect(await found()).toEqual(ofLarge('its file is missing'));
  });

  test('a check reports a truncated block with the path of its file', async () => {
    await truncate(blockFile(SECOND_BLOCK), 50);
    expect(await found()).toEqual(ofLarge('it has 50 bytes instead of 100000'));
  });

  test('a check reports a damaged block for each of its files, also overwritten and deleted ones', async () => {
    await put(service, '/photos/Large.jpg', 'replaced');
    await put(service, '/copy.jpg', LARGE);
    await put(service, '/gone.jpg', LARGE);
    await rpc(service, 'files/delete_v2', { path: '/gone.jpg' });
    await flipByte(blockFile(SECOND_BLOCK));
    const lines = await found();
    expect(lines.map((line) => /^(.*?), rev/.exec(line)?.[1])).toEqual([
      `${email}:/copy.jpg (current`,
      `${email}:/gone.jpg (deleted`,
      `${email}:/photos/Large.jpg (earlier`,
    ]);
  });

  test('a check of a damaged block of 31 revisions names 20 and counts the others', async () => {
    for (let copy = 0; copy < 30; copy++)
      await rpc(service, 'files/copy_v2', { from_path: '/small.txt', to_path: `/copies/${copy}` });
    await corrupt(`UPDATE block_bytes SET bytes = CAST('smell' AS BLOB) WHERE bytes = CAST('small' AS BLOB)`);
    const lines = await found();
    expect(lines).toHaveLength(21);
    expect(lines.at(-1)).toMatch(/^… and 11 more revisions: block [0-9a-f]{64}: its bytes have changed$/);
  });

  test('a check reports a missing block of an unfinished upload session', async () => {
    await rm(blockFile(pseudoRandomBytes(70_000, 2)));
    expect(await found()).toEqual([
      expect.stringMatching(/its file is missing \(from byte 0 on of the unfinished upload session pid_/),
    ]);
  });

  test('a check reports a block missing from the database', async () => {
    await corrupt(`DELETE FROM block_bytes WHERE bytes = CAST('small' AS BLOB)`);
    expect(await found()).toEqual([
      expect.stringMatching(/:\/small\.txt \(current, .*its bytes are not in the database$/),
    ]);
  });
});

describe('check of rows', () => {
  const at = (path: string, what: string) => [`${email}:${path}: ${what}`];

  test.each([
    [
      'with the id of another one',
      `UPDATE revision SET id = (SELECT id FROM entry WHERE name = 'photos') WHERE name = 'small.txt';
       UPDATE entry SET id = (SELECT id FROM entry WHERE name = 'photos') WHERE name = 'small.txt'`,
      () => at('/photos', 'another entry has the same id'),
    ],
    [
      'of a folder that is missing',
      `DELETE FROM entry WHERE name = 'photos'`,
      () => at('/photos/Large.jpg', 'its parent folder is missing'),
    ],
    [
      'under another name',
      `UPDATE entry SET name_key = 'other.txt' WHERE name = 'small.txt'`,
      () => [
        ...at('/small.txt', 'it differs from its revision'),
        ...at('/small.txt', 'search does not find it by one of its words'),
        ...at('/small.txt', 'it is not where its path says'),
      ],
    ],
    [
      'with another number than its revision',
      `UPDATE entry SET seq = seq + 1000000000 WHERE name = 'small.txt'`,
      () => [
        ...at('/small.txt', 'it differs from its revision'),
        ...at('/small.txt', 'its last change is later than the last counted change'),
      ],
    ],
    [
      'that is live and deleted',
      `INSERT INTO deletion SELECT ns, parent, name_key, name, path, id, seq, 0, 0, 0, 0 FROM entry WHERE name = 'small.txt'`,
      () => at('/small.txt', 'it exists and is deleted at the same time'),
    ],
    [
      'that counts wrongly',
      `UPDATE holding SET revisions = 9 WHERE content = (SELECT content FROM revision WHERE name = 'small.txt')`,
      () => at('/small.txt', 'the use count of its content is wrong'),
    ],
    [
      'that sums up wrongly',
      'UPDATE namespace SET used_bytes = used_bytes + 1',
      () => at('', 'its used space is wrong'),
    ],
    [
      'of the future, which every cursor is before',
      `UPDATE namespace SET horizon = 9000000000000000`,
      () => at('', 'cursors are refused: the history of changes begins in the future'),
    ],
    [
      'without which no cursor can be checked',
      `DELETE FROM setting WHERE name = 'cursor-key'`,
      () => ['cursors cannot be checked: the key or the tag of the service is missing or has another form'],
    ],
  ])('a check reports a row %s', async (_, sql, expected) => {
    await corrupt(sql);
    expect(await found()).toEqual(expected());
  });

  test('a check reports a wrong size or hash of a content by the files that have it', async () => {
    await corrupt(`UPDATE content SET size = size + 1, hash = replace(hash, substr(hash, 1, 4), 'beef')
      WHERE id = (SELECT content FROM revision WHERE path = '/deleted.txt')`);
    const lines = await found();
    expect(lines.map((line) => line.replace(/, rev \w+/, ''))).toEqual([
      `${email}:/deleted.txt (deleted): its blocks do not have its size`,
      `${email}:: its used space is wrong`,
      `${email}:/deleted.txt (deleted): its content hash is not that of its blocks`,
    ]);
  });

  test('a check reports a hole in a block list', async () => {
    await corrupt(`DELETE FROM content_block WHERE position = 0
      AND content = (SELECT content FROM revision WHERE path LIKE '%Large.jpg' ORDER BY number DESC LIMIT 1)`);
    const lines = (await found()).map((line) => line.replace(/.*?\): /, ''));
    expect(lines).toContain('one of its blocks is missing from its list');
    expect(lines).toContain('its content hash is not that of its blocks');
  });

  test('a check reports missing and wrong rows of the word index by their names', async () => {
    await corrupt(`DELETE FROM word WHERE word IN ('small', 'deleted');
      INSERT INTO word SELECT ns, 'strange', name_key FROM word WHERE word = 'large'`);
    expect((await found()).sort()).toEqual([
      `${email}:/deleted.txt: search does not find it by one of its words`,
      `${email}:/small.txt: search does not find it by one of its words`,
      `${email}:large.jpg: the word index lists it under a word that is not in its name`,
    ]);
  });

  test('a check reports a missing revision of an entry', async () => {
    await corrupt(`DELETE FROM revision WHERE name = 'small.txt'`);
    const lines = await found();
    expect(lines).toContain(`${email}:/small.txt: its revision is missing`);
    expect(lines.some((line) => /refers to a row of revision that is missing/.test(line))).toBe(true);
  });
});

describe('check of databases', () => {
  test('a check reports damaged pages of the database', async () => {
    for (let file = 0; file < 300; file++)
      await put(service, `/many/${'long name '.repeat(15)}${file}`, `${file}`);
    await service.close();
    const file = join(dataDirectory, 'storage.sqlite');
    const bytes = await readFile(file);
    // Overwrites the header of each page with rows of the tree.
    let spoiled = 0;
    for (let page = 4096; page < bytes.length; page += 4096) {
      if (!bytes.subarray(page, page + 4096).includes('long name')) continue;
      bytes.fill(0xff, page, page + 8);
      spoiled++;
    }
    expect(spoiled).toBeGreaterThan(3);
    await writeFile(file, bytes);
    const lines = await found();
    expect(lines.some((line) => line.startsWith('the database'))).toBe(true);
  });

  test('a check reports a storage.sqlite that is no database', async () => {
    await service.close();
    await writeFile(join(dataDirectory, 'storage.sqlite'), pseudoRandomBytes(10_000, 3));
    expect(await found()).toEqual([expect.stringMatching(/storage\.sqlite is damaged/)]);
  });

  test('a check of a data directory in use is refused and leaves the service working', async () => {
    const checking = checkService({ dataDirectory }, () => {}).next();
    await expect(checking).rejects.toMatchObject({ reason: 'in-use' });
    expect((await download(service, '/small.txt')).text).toBe('small');
  });

  test('a check reports a missing accounts.sqlite', async () => {
    await service.close();
    await rm(join(dataDirectory, 'accounts.sqlite'));
    expect(await found()).toEqual(['accounts.sqlite is missing: no account can be reached']);
  });

  test('a check of a missing data directory fails with the reason unusable', async () => {
    const nothing = checkService({ dataDirectory: join(dataDirectory, 'nothing') }, () => {}).next();
    await expect(nothing).rejects.toMatchObject({ reason: 'unusable' });
  });
});

test('a repair corrects counts, sums and the index of words, and a check finds nothing then', async () => {
  await corrupt(`UPDATE holding SET revisions = revisions + 1, files = 5; UPDATE namespace SET used_bytes = 1;
    DELETE FROM word WHERE word = 'small'; INSERT INTO word SELECT ns, 'strange', name_key FROM word WHERE word = 'large'`);
  const told = await found();
  expect(told.length).toBeGreaterThan(5);
  const repaired: CheckLine[] = [];
  for await (const line of checkService({ dataDirectory, repairs: true }, () => {})) repaired.push(line);
  expect(repaired.map(({ text }) => text).sort()).toEqual(told.map((line) => `${line} (repaired)`).sort());
  expect(repaired.every(({ isRepaired }) => isRepaired)).toBe(true);
  expect(await found()).toEqual([]);
});

test('a check after a kill ignores what the next start would clean up', async () => {
  await corrupt(`UPDATE setting SET value = 0 WHERE name = 'closed'`);
  await writeFile(join(dataDirectory, 'blocks', 'a'.repeat(64)), 'half a block');
  expect(await found()).toEqual([]);
});

test('a download of a damaged block breaks off, whole and by range', async () => {
  await flipByte(blockFile(SECOND_BLOCK));
  const { token, url } = service;
  const headers = {
    authorization: `Bearer ${token}`,
    'dropbox-api-arg': JSON.stringify({ path: '/photos/Large.jpg' }),
  };
  const answer = await fetch(`${url}/2/files/download`, { method: 'POST', headers });
  await expect(answer.arrayBuffer()).rejects.toThrow();
  const range = 'bytes=4194304-4194310';
  const part = fetch(`${url}/2/files/download`, { method: 'POST', headers: { ...headers, range } });
  await expect(
    part.then(async (got) => (got.ok ? await got.arrayBuffer() : Promise.reject(new Error('refused')))),
  ).rejects.toThrow();
});

test('after a download of a damaged block has failed, slow downloads of other files have their own bytes', async () => {
  const files = [3, 4].map((seed) => pseudoRandomBytes(12 * 1024 * 1024, seed));
  for (const [index, bytes] of files.entries()) await put(service, `/good-${index}`, bytes);
  await flipByte(blockFile(LARGE.subarray(0, 4 * 1024 * 1024)));
  const { token, url } = service;
  const open = (path: string) =>
    fetch(`${url}/2/files/download`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'dropbox-api-arg': JSON.stringify({ path }) },
    });
  expect((await open('/photos/Large.jpg')).status).toBe(500);
  // The first one is not read until the second one has gone through the service's buffers.
  const answers = [await open('/good-0'), await open('/good-1')];
  for (const [index, answer] of [...answers.entries()].reverse())
    expect(Buffer.from(await answer.arrayBuffer()).equals(files[index] ?? Buffer.alloc(0))).toBe(true);
});
