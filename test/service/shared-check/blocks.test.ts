import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { rmSync } from 'node:fs';
import { readdir, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { CheckProgress } from '../../../src/service/admin/check.ts';
import { pseudoRandomBytes } from '../../support/bytes.ts';
import { startTestService } from '../../support/service.ts';
import { ALL_BYTES, type Checked, found, foundIn, SECOND_BLOCK, sharedChecks } from './checked.ts';

const DAY_MS = 24 * 60 * 60 * 1000;

const checked = sharedChecks();

/** Returns the folder with the files of blocks. */
async function blocksOf({ folder }: Checked): Promise<string> {
  const [tag = ''] = await readdir(folder);
  return join(folder, tag, 'blocks');
}

/** Returns the file of a block. */
async function fileOf(data: Checked, bytes: Uint8Array): Promise<string> {
  const blocks = await blocksOf(data);
  const hash = createHash('sha256').update(bytes).digest('hex');
  const name = (await readdir(blocks)).find((one) => one.startsWith(hash));
  return join(blocks, name ?? 'missing');
}

async function flipByte(file: string): Promise<void> {
  const bytes = await readFile(file);
  bytes[777] = (bytes[777] ?? 0) ^ 1;
  await writeFile(file, bytes);
}

test('a check of sound data in PostgreSQL tells of nothing and reads every byte', async () => {
  const { metadata, folder } = await checked();
  let last: CheckProgress | undefined;
  const lines = await found({ metadata, blocks: { folder } }, (progress) => {
    last = progress;
  });
  expect(lines).toEqual([]);
  expect(last).toEqual({ blocks: 6, bytes: ALL_BYTES, unowned: 0 });
});

test('a check takes the number of blocks from the statistics of PostgreSQL, and does not count them', async () => {
  const { metadata, folder, sql } = await checked();
  await sql('ANALYZE davgate.block');
  await sql(`INSERT INTO davgate.block SELECT ns, id + 1000, sha256(hash), size, inline, bytes, version
    FROM davgate.block WHERE bytes IS NOT NULL`);
  let last: CheckProgress | undefined;
  await found({ metadata, blocks: { folder } }, (progress) => {
    last = progress;
  });
  expect(last?.totalBlocks).toBe(6);
});

describe('check of blocks in a shared folder', () => {
  const ofLarge = ({ email }: Checked, why: string) => [
    expect.stringMatching(
      new RegExp(
        `^${email}:/photos/Large\\.jpg \\(current, rev [0-9a-f]{22}\\): block [0-9a-f]{64}: ${why}$`,
      ),
    ),
  ];

  test.each<[string, (file: string) => Promise<void>, string]>([
    ['changed', flipByte, 'its bytes have changed'],
    ['missing', (file) => rm(file), 'its file is missing'],
    ['truncated', (file) => truncate(file, 50), 'it has 50 bytes instead of 100000'],
  ])('a check tells of a %s block with the path of its file', async (_, damage, why) => {
    const data = await checked();
    await damage(await fileOf(data, SECOND_BLOCK));
    expect(await foundIn(data)).toEqual(ofLarge(data, why));
  });

  test('a check tells of every file when the folder of the blocks is missing', async () => {
    const data = await checked();
    await rm(await blocksOf(data), { recursive: true });
    const lines = await foundIn(data);
    expect(lines).toHaveLength(3);
    for (const line of lines) expect(line).toMatch(/its file is missing/);
    expect(lines.filter((line) => line.startsWith(`${data.email}:/photos/Large.jpg (current`))).toHaveLength(
      2,
    );
    expect(await readdir(join(await blocksOf(data), '..'))).toEqual(['owner']);
  });

  test('a check with a folder that is not that of the service is refused, and makes nothing there', async () => {
    const data = await checked();
    const other = join(data.folder, '..', 'other');
    await expect(foundIn({ ...data, folder: other })).rejects.toMatchObject({
      name: 'DataDirectoryError',
      message: expect.stringContaining('does not have the blocks of this service: mount it'),
    });
    expect(await readdir(join(data.folder, '..'))).toEqual(['blocks']);
  });

  test('a check tells of a missing block of an unfinished upload session', async () => {
    const data = await checked();
    await rm(await fileOf(data, pseudoRandomBytes(70_000, 2)));
    expect(await foundIn(data)).toEqual([
      expect.stringMatching(/its file is missing \(from byte 0 on of the unfinished upload session pid_/),
    ]);
  });

  test.each([
    ['changed', `UPDATE davgate.block SET bytes = 'smell'`, 'its bytes have changed'],
    ['missing', 'UPDATE davgate.block SET bytes = NULL', 'its bytes are not in the database'],
    ['of another size', `UPDATE davgate.block SET bytes = 'smaller'`, 'it has 7 bytes instead of 5'],
  ])('a check tells of bytes in a row that are %s, with the path of their file', async (_, sql, why) => {
    const data = await checked();
    await data.sql(`${sql} WHERE bytes = 'small'`);
    expect(await foundIn(data)).toEqual([
      expect.stringMatching(
        new RegExp(`^${data.email}:/small\\.txt \\(current, rev \\w+\\): block \\w+: ${why}$`),
      ),
    ]);
  });

  test('a check tells of a block without a name by its file', async () => {
    const data = await checked();
    await data.sql(
      'DELETE FROM davgate.block_name WHERE block = (SELECT max(block) FROM davgate.block_name)',
    );
    const lines = await foundIn(data);
    expect(lines).toEqual([expect.stringMatching(/block \w+: its file is missing/)]);
  });
});

describe('stored blocks that belong to nothing', () => {
  const name = `${'a'.repeat(64)}-0123456789abcdef`;

  /** Stores a block to which nothing refers, which services have noticed `days` ago. */
  async function withOrphan(days: number): Promise<Checked> {
    const data = await checked();
    await writeFile(join(await blocksOf(data), name), 'lost');
    if (days > 0)
      await data.sql(
        `INSERT INTO davgate.condemned_block VALUES ('${name}', now() - interval '${days} days')`,
      );
    return data;
  }

  const names = async (data: Checked) => await readdir(await blocksOf(data));

  test('a block that nothing refers to is counted until services should have removed it, and told then', async () => {
    let last: CheckProgress | undefined;
    const linesAfter = async (days: number) => {
      const { metadata, folder } = await withOrphan(days);
      return await found({ metadata, blocks: { folder } }, (progress) => {
        last = progress;
      });
    };
    expect(await linesAfter(0)).toEqual([]);
    expect(last?.unowned).toBe(1);
    expect(await linesAfter(1.5)).toEqual([]);
    expect(last?.unowned).toBe(1);
    expect(await linesAfter(2.5)).toEqual([
      `the stored block ${name} belongs to no file and no upload (it only takes space)`,
    ]);
    expect(last?.unowned).toBe(0);
  });

  test('a block that is kept for backups is not told', async () => {
    const data = await withOrphan(5);
    expect(await foundIn(data, { keepDeletedBlocksMs: 7 * DAY_MS })).toEqual([]);
  });

  test('a repair keeps blocks as long as a service was told to keep them', async () => {
    const data = await withOrphan(5);
    const { metadata, folder } = data;
    const service = await startTestService({ metadata, blocks: { folder }, keepDeletedBlocksMs: 7 * DAY_MS });
    await service.close();
    expect(await foundIn(data, { repairs: true })).toEqual([]);
    expect(await names(data)).toContain(name);
  });

  test('a repair removes blocks that have belonged to nothing for a day, and no younger ones', async () => {
    const data = await withOrphan(1.5);
    expect(await foundIn(data)).toEqual([]);
    expect(await names(data)).toContain(name);
    const before = await names(data);
    expect(await foundIn(data, { repairs: true })).toEqual([
      '1 stored blocks belong to no file and no upload (repaired)',
    ]);
    expect(await names(data)).toEqual(before.filter((one) => one !== name));
    const young = await withOrphan(0.5);
    expect(await foundIn(young, { repairs: true })).toEqual([]);
    expect(await foundIn(young, { repairs: true })).toEqual([]);
    expect(await names(young)).toContain(name);
  });

  test('a repair keeps a block that services have condemned and an upload needs again', async () => {
    const data = await checked();
    const needed = (await names(data)).sort();
    for (const one of needed)
      await data.sql(`INSERT INTO davgate.condemned_block VALUES ('${one}', now() - interval '9 days')
        ON CONFLICT (name) DO UPDATE SET since = excluded.since`);
    expect(await foundIn(data, { repairs: true })).toEqual([]);
    expect((await names(data)).sort()).toEqual(needed);
    expect(needed).toHaveLength(3);
  });

  test('a block that a service removes during a check is not told', async () => {
    const { metadata, folder, ...data } = await checked();
    const file = await fileOf({ metadata, folder, ...data }, SECOND_BLOCK);
    let isRemoved = false;
    const lines = await found({ metadata, blocks: { folder } }, () => {
      if (isRemoved) return;
      isRemoved = true;
      // The rows have been read, and this block has not.
      const sql = `DELETE FROM davgate.block_name WHERE name = '${basename(file)}'`;
      execFileSync('psql', [metadata, '-c', sql]);
      rmSync(file);
    });
    expect(isRemoved).toBe(true);
    expect(lines).toEqual([]);
  });
});
