import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { ServicePlace } from '../../src/service/copy/sides.ts';
import { pseudoRandomBytes } from '../support/bytes.ts';
import { atService, copied, newDatabasePlace, newFolder } from '../support/copied-places.ts';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';
import { download, put, rpc } from '../support/service-client.ts';

let postgres: TestPostgres;

beforeAll(async () => {
  postgres = await startPostgres();
});
afterAll(() => postgres.close());

const FILES = 6;

/** Makes a service with some files, each of a block of its own. Returns its token. */
async function filledPlace(place: ServicePlace): Promise<string> {
  return await atService(place, async (service) => {
    for (let file = 0; file < FILES; file++) await put(service, `/f${file}`, pseudoRandomBytes(70_000, file));
    return service.token;
  });
}

/** Interrupts a copy at its `call`th step. Returns whether it was, and how many blocks it has stored. */
async function attempt(from: ServicePlace, to: ServicePlace, call: number) {
  const stop = new Error('interrupted by the test');
  let [calls, stored] = [0, 0];
  try {
    await copied(from, to, ({ blocks, earlierBlocks }) => {
      stored = blocks - earlierBlocks;
      calls += 1;
      if (calls === call) throw stop;
    });
    return { isWhole: true, stored };
  } catch (failure) {
    if (failure !== stop) throw failure;
    return { isWhole: false, stored };
  }
}

test.each(['a data directory', 'PostgreSQL'])(
  'a copy to %s that is interrupted at each of its steps goes on, and stores no block twice',
  async (kind) => {
    const from = { dataDirectory: await newFolder() };
    const to =
      kind === 'PostgreSQL' ? await newDatabasePlace(postgres) : { dataDirectory: await newFolder() };
    const token = await filledPlace(from);
    let stored = 0;
    for (let call = 1; ; call++) {
      const done = await attempt(from, to, call);
      stored += done.stored;
      if (done.isWhole) break;
      await expect(atService(to, async () => undefined)).rejects.toThrow(/unfinished copy/);
    }
    expect(stored).toBe(FILES);
    await atService(to, async ({ url }) => {
      for (let file = 0; file < FILES; file++)
        expect((await download({ url, token }, `/f${file}`)).status).toBe(200);
    });
  },
);

test('a copy whose process was killed between its last commit and its end is made again', async () => {
  const [from, to] = [{ dataDirectory: await newFolder() }, { dataDirectory: await newFolder() }];
  const token = await filledPlace(from);
  const mark = { tag: '', copyId: 'an earlier one' };
  await copied(from, to);
  const { json } = await atService(from, ({ url }) =>
    rpc({ url, token }, 'files/get_metadata', { path: '/f0' }),
  );
  // Its revision ends with the tag of the service.
  const tag = (json as { rev: string }).rev.slice(-8);
  await writeFile(join(to.dataDirectory, 'unfinished-copy.json'), JSON.stringify({ ...mark, tag }));
  expect(await copied(from, to)).toMatchObject({ earlierBlocks: FILES });
  await atService(to, async ({ url }) => expect((await download({ url, token }, '/f5')).status).toBe(200));
});

test.each(['a data directory', 'PostgreSQL'])(
  'a copy to %s that had ended when it is started again compares both sides, and is refused when they differ',
  async (kind) => {
    const from = { dataDirectory: await newFolder() };
    const to =
      kind === 'PostgreSQL' ? await newDatabasePlace(postgres) : { dataDirectory: await newFolder() };
    const token = await filledPlace(from);
    const { rows } = await copied(from, to);
    expect(await copied(from, to)).toMatchObject({ blocks: 0, rows });
    await atService(from, ({ url }) => rpc({ url, token }, 'files/delete_v2', { path: '/f0' }));
    await expect(copied(from, to)).rejects.toThrow(/is not empty|has a service already/);
  },
);

test('a copy that goes on after its source has changed has the last state', async () => {
  const from = { dataDirectory: await newFolder() };
  const to = await newDatabasePlace(postgres);
  const token = await filledPlace(from);
  await attempt(from, to, FILES);
  await atService(from, async (service) => {
    await put(service, '/f0', pseudoRandomBytes(80_000, 99));
    await rpc(service, 'files/permanently_delete', { path: '/f1' });
  });
  await copied(from, to);
  await atService(to, async ({ url }) => {
    expect((await download({ url, token }, '/f0')).headers.get('content-length')).toBe('80000');
    expect((await download({ url, token }, '/f1')).status).toBe(409);
  });
});
