import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { administer } from '../../src/service/admin/administration.ts';
import { checkService } from '../../src/service/admin/check.ts';
import type { ServicePlace } from '../../src/service/copy/sides.ts';
import { openPool } from '../../src/service/postgres/connect.ts';
import { openPostgresStorage } from '../../src/service/storage/postgres/postgres-storage.ts';
import { systemClock } from '../../src/util/clock.ts';
import { silentLog } from '../../src/util/log.ts';
import { pseudoRandomBytes } from '../support/bytes.ts';
import { atService, copied, newDatabasePlace, newFolder } from '../support/copied-places.ts';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';
import { download, put } from '../support/service-client.ts';

let postgres: TestPostgres;

beforeAll(async () => {
  postgres = await startPostgres();
});
afterAll(() => postgres.close());

const newDirectory = async () => ({ dataDirectory: await newFolder() });

/** Makes a service with one file of one block. */
async function filledPlace<Place extends ServicePlace>(place: Place): Promise<Place> {
  await atService(place, (service) => put(service, '/file', pseudoRandomBytes(100_000, 3)));
  return place;
}

/** Begins a copy and interrupts it when its first block has been stored. */
async function interrupted(from: ServicePlace, to: ServicePlace): Promise<void> {
  const stop = new Error('interrupted by the test');
  const copying = copied(from, to, () => {
    throw stop;
  });
  await expect(copying).rejects.toBe(stop);
}

const UNFINISHED = /has an unfinished copy of a service: end it with the davgate service copy that began it/;

test('a running service is copied neither from a data directory nor from a database, and nothing is copied over one', async () => {
  const places = [
    await filledPlace(await newDirectory()),
    await filledPlace(await newDatabasePlace(postgres)),
  ];
  const [directory, database] = places as [ServicePlace, ServicePlace];
  const empty = await newDatabasePlace(postgres);
  await atService(directory, async () => {
    await expect(copied(directory, empty)).rejects.toThrow(/storage\.sqlite is in use by another process/);
  });
  await atService(database, async () => {
    await expect(copied(database, await newDirectory())).rejects.toThrow(
      /the PostgreSQL database test_\w+ at .* is used by a service that runs: stop all its services first/,
    );
    await expect(copied(directory, database)).rejects.toThrow(/is used by a service that runs/);
  });
});

test('a target that is not empty is refused and stays as it is', async () => {
  const [from, there] = [await filledPlace(await newDirectory()), await filledPlace(await newDirectory())];
  const database = await filledPlace(await newDatabasePlace(postgres));
  await expect(copied(from, there)).rejects.toThrow(/is not empty: name an empty folder/);
  await expect(copied(from, from)).rejects.toThrow(/is not empty/);
  await expect(copied(from, database)).rejects.toThrow(/has a service already: name an empty database/);
  for (const place of [there, database])
    await atService(place, async (service) => expect((await download(service, '/file')).status).toBe(200));
});

test('blocks are not copied to the folder in which the service has them', async () => {
  const from = await filledPlace(await newDatabasePlace(postgres));
  const to = { ...(await newDatabasePlace(postgres)), ...('blocks' in from && { blocks: from.blocks }) };
  await expect(copied(from, to as ServicePlace)).rejects.toThrow(
    /has blocks of this service already: name another bucket or folder/,
  );
  await atService(from, async (service) => expect((await download(service, '/file')).status).toBe(200));
});

test('an unfinished copy in a data directory is refused by the service, its commands, its check, and a copy of another service or from it', async () => {
  const [from, other] = [await filledPlace(await newDirectory()), await filledPlace(await newDirectory())];
  const to = await newDirectory();
  await interrupted(from, to);
  await expect(atService(to, async () => undefined)).rejects.toThrow(UNFINISHED);
  await expect(administer(to, { mayCreate: false }, async (admin) => admin.accounts())).rejects.toThrow(
    UNFINISHED,
  );
  const lines = checkService(to, () => undefined);
  await expect(lines.next()).rejects.toThrow(UNFINISHED);
  await expect(copied(to, await newDirectory())).rejects.toThrow(UNFINISHED);
  await expect(copied(other, to)).rejects.toThrow(/has an unfinished copy of another service/);
  expect(await copied(from, to)).toMatchObject({ blocks: 1, earlierBlocks: 1 });
  await atService(to, async (service) => expect((await download(service, '/file')).status).toBe(200));
});

test('an unfinished copy in a database is refused by the service, its commands, and a copy of another service or from it', async () => {
  const [from, other] = [await filledPlace(await newDirectory()), await filledPlace(await newDirectory())];
  const to = await newDatabasePlace(postgres);
  await interrupted(from, to);
  await expect(atService(to, async () => undefined)).rejects.toThrow(UNFINISHED);
  const administered = { ...(await newDirectory()), ...to, blocks: undefined };
  await expect(
    administer(administered, { mayCreate: true }, async (admin) => admin.accounts()),
  ).rejects.toThrow(UNFINISHED);
  await expect(copied(to, await newDirectory())).rejects.toThrow(UNFINISHED);
  await expect(copied(other, to)).rejects.toThrow(/has an unfinished copy of another service/);
  expect(await copied(from, to)).toMatchObject({ blocks: 1, earlierBlocks: 1 });
  await atService(to, async (service) => expect((await download(service, '/file')).status).toBe(200));
});

test('a service that starts while a copy marks its database is refused, and the copy can be ended', async () => {
  const from = await filledPlace(await newDirectory());
  const [metadata, blocks] = [await postgres.newDatabase(), { folder: await newFolder() }];
  const to = { metadata, blocks };
  // Not by the name of services: a copy would find its connections.
  const pool = openPool(metadata, silentLog, { applicationName: 'test' });
  onTestFinished(() => pool.end());
  let isMarked = false;
  // The last moment: the tables have been made, and the settings not.
  const late = new Proxy(pool, {
    get(target, name) {
      if (name === 'query')
        return async (text: string, values?: unknown[]) => {
          if (!isMarked && text.includes('davgate.setting')) {
            isMarked = true;
            await interrupted(from, to);
          }
          return await target.query(text, values);
        };
      const value: unknown = Reflect.get(target, name);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
  const scratchDirectory = await newFolder();
  const common = { clock: systemClock, log: silentLog };
  const opening = openPostgresStorage({ ...common, pool: late, scratchDirectory, blocks });
  // If it is not refused, its connections would stay.
  onTestFinished(() =>
    opening.then(
      (storage) => storage.close(),
      () => undefined,
    ),
  );
  await expect(opening).rejects.toThrow(UNFINISHED);
  expect(await copied(from, to)).toMatchObject({ blocks: 1, earlierBlocks: 1 });
  await atService(to, async (service) => expect((await download(service, '/file')).status).toBe(200));
});

test('a damaged block ends the copy, which names it, and the target stays unfinished', async () => {
  const from = await filledPlace(await newDirectory());
  const [block = ''] = await readdir(join(from.dataDirectory, 'blocks'));
  const file = join(from.dataDirectory, 'blocks', block);
  const bytes = await readFile(file);
  await writeFile(file, bytes.subarray(1));
  const to = await newDirectory();
  await expect(copied(from, to)).rejects.toThrow(`block ${block} is damaged`);
  await expect(atService(to, async () => undefined)).rejects.toThrow(UNFINISHED);
  await writeFile(file, bytes);
  expect(await copied(from, to)).toMatchObject({ blocks: 1 });
});

test('a folder or database without a service is not copied', async () => {
  await expect(copied(await newDirectory(), await newDirectory())).rejects.toThrow(
    /storage\.sqlite does not exist/,
  );
  await expect(copied(await newDatabasePlace(postgres), await newDirectory())).rejects.toThrow(
    /has no service of this version of davgate/,
  );
});
