import { randomBytes } from 'node:crypto';
import { readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { bytesOf, HOME, put, refusal, textAt } from './opened.ts';
import { openedShared, postgresTests, type SharedPlace } from './opened-shared.ts';

const { newPlace, two } = postgresTests();

/** Returns the path of the only block of a place. */
async function onlyBlock({ folder }: SharedPlace): Promise<string> {
  const [tag = ''] = await readdir(folder);
  const blocks = join(folder, tag, 'blocks');
  const [name = 'none'] = await readdir(blocks);
  return join(blocks, name);
}

test.each([
  ['changed', (file: string) => writeFile(file, Buffer.alloc(100_000))],
  ['missing', (file: string) => rm(file)],
])(
  'a block that is %s, as one storage finds, is repaired by an upload of the same bytes at the other',
  async (_, damage) => {
    const { one, other, place } = await two();
    const bytes = randomBytes(100_000);
    const file = await put(one, '/a', bytes);
    await textAt(other, '/a');
    await damage(await onlyBlock(place));
    expect(await refusal(textAt(one, '/a'))).toMatch(/^block [0-9a-f]{64} is damaged/);
    const copy = await put(other, '/b', bytes);
    for (const storage of [one, other])
      for (const its of [file, copy])
        expect((await bytesOf(storage.read(HOME, its, undefined))).equals(bytes)).toBe(true);
  },
);

test.each([
  ['changed', `'smell'`],
  ['missing', 'NULL'],
])(
  'a small block that is %s is repaired by an upload of the same bytes, to the same path or another',
  async (_, value) => {
    const place = await newPlace();
    const { storage: one, pool } = await openedShared(place);
    const { storage: other } = await openedShared(place);
    const file = await put(one, '/a', 'small');
    for (const path of ['/a', '/b', '/b']) {
      await pool.query(`UPDATE davgate.block SET bytes = ${value}`);
      expect(await refusal(textAt(one, '/a'))).toMatch(/^block [0-9a-f]{64} is damaged/);
      await put(other, path, 'small');
      expect(await textAt(other, path)).toBe('small');
      expect((await bytesOf(one.read(HOME, file, undefined))).toString()).toBe('small');
    }
  },
);
