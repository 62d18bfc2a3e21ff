import { join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { atService, copied, newDatabasePlace, newFolder } from '../support/copied-places.ts';
import { answersOf, CONTINUED, continued, cursorsIn, filled } from '../support/filled-service.ts';
import { startMemoryBucket } from '../support/memory-bucket.ts';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';

let postgres: TestPostgres;

beforeAll(async () => {
  postgres = await startPostgres();
});
afterAll(() => postgres.close());

/** Of two blocks of the large file, and that of 100 kB, which three accounts share. */
const BLOCKS = { blocks: 3, bytes: 4 * 1024 * 1024 + 300_000, earlierBlocks: 0 };

test('a service that is copied from a data directory to PostgreSQL and back gives the same answers, follows its cursors, and goes on', async () => {
  const directory = { dataDirectory: await newFolder() };
  const database = await newDatabasePlace(postgres);
  const back = { dataDirectory: join(await newFolder(), 'new') };
  const { made, before, changes } = await atService(directory, async (service) => {
    const made = await filled(service);
    const before = await answersOf(service.url, made);
    return { made, before, changes: await cursorsIn(service.url, made) };
  });
  expect(changes).toMatchObject([{ status: 200 }, { status: 200 }]);

  expect(await copied(directory, database)).toMatchObject(BLOCKS);
  await atService(database, async ({ url }) => {
    expect(await answersOf(url, made)).toEqual(before);
    expect(await cursorsIn(url, made)).toEqual(changes);
  });
  expect(await copied(database, back)).toMatchObject(BLOCKS);
  for (const place of [back, database])
    await atService(place, async ({ url }) => {
      expect(await answersOf(url, made)).toEqual(before);
      expect(await cursorsIn(url, made)).toEqual(changes);
      expect(await continued(url, made)).toEqual(CONTINUED);
    });
});

test('a service that is copied from PostgreSQL to a data directory with a bucket, and on to another database, gives the same answers, and its cursors lead on', async () => {
  const bucket = await startMemoryBucket();
  onTestFinished(() => bucket.close());
  const first = await newDatabasePlace(postgres);
  const directory = { dataDirectory: await newFolder(), blocks: bucket.access };
  const second = await newDatabasePlace(postgres);
  const { made, before, changes } = await atService(first, async (service) => {
    const made = await filled(service);
    return {
      made,
      before: await answersOf(service.url, made),
      changes: await cursorsIn(service.url, made),
    };
  });
  expect(await copied(first, directory)).toMatchObject(BLOCKS);
  expect(await copied(directory, second)).toMatchObject(BLOCKS);
  await atService(directory, async ({ url }) => {
    expect(await answersOf(url, made)).toEqual(before);
    expect(await cursorsIn(url, made)).toEqual(changes);
    expect(await continued(url, made)).toEqual(CONTINUED);
  });
  await atService(second, async ({ url }) => {
    expect(await answersOf(url, made)).toEqual(before);
    // Their commits are not those of this database.
    for (const answer of await cursorsIn(url, made))
      expect(answer).toMatchObject({ status: 409, answer: { error: { '.tag': 'reset' } } });
    expect(await continued(url, made)).toEqual(CONTINUED);
  });
});
