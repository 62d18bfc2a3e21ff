import { setTimeout as pause } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { isConnectionLost } from '../../../src/service/postgres/away.ts';
import { DamagedBlockError } from '../../../src/service/storage/errors.ts';
import type { Storage } from '../../../src/service/storage/storage.ts';
import { effort } from '../../support/effort.ts';
import { eventually } from '../../support/eventually.ts';
import { startMemoryBucket } from '../../support/memory-bucket.ts';
import { body, bytesOf, commit, HOME } from '../storage/opened.ts';
import { openedShared, postgresTests, tidyAll } from '../storage/opened-shared.ts';
import { UNANSWERED } from './answers.ts';
import { ABSENT, type FileStore, type Part, VersionedFiles } from './versioned-files.ts';

const { newPlace } = postgresTests();

/** How long the collector runs beside uploads, in s. With TEST_EFFORT=360 it is an hour. */
const SECONDS = effort(10);

/** Changes that are acknowledged at least. */
const ACKNOWLEDGED = 60;

/** How long a block without a reference is kept, in ms: shorter than some uploads take. */
const KEPT_MS = 500;

const WRITERS = 6;

/** Share of the requests that fail. */
const FAILING = 0.1;
const FAULTS = ['reset', 'lost-answer', 'late'] as const;

test(`a collector that runs for ${SECONDS} s beside uploads, overwrites and removals at three storages removes no block that is needed, and all others`, async () => {
  const bucket = await startMemoryBucket();
  onTestFinished(() => bucket.close());
  const place = await newPlace();
  const options = { blocks: bucket.access, uploadMsMax: KEPT_MS };
  const opened = await Promise.all([1, 2, 3].map(() => openedShared(place, options)));
  const [{ pool }] = opened as [(typeof opened)[number]]; // three were opened
  const stores = opened.map(({ storage }) => new StorageFiles(storage));
  const storeOf = (count: number) => stores[count % stores.length] as StorageFiles; // there are three
  const files = Array.from({ length: WRITERS }, (_, index) => new VersionedFiles(`w${index}`, 3));
  const sum = (count: (one: VersionedFiles) => number) => files.reduce((all, one) => all + count(one), 0);
  const tidyEach = async () => {
    for (const { storage } of opened) {
      // As if the last one still worked when its time was over.
      await pool.query('DELETE FROM davgate.lease');
      await tidyAll(storage).catch(expectPassing);
    }
  };

  bucket.fault = () =>
    Math.random() < FAILING ? FAULTS[Math.floor(Math.random() * FAULTS.length)] : undefined;
  const ending = Date.now() + SECONDS * 1000;
  const isOver = () => Date.now() > ending && sum((one) => one.acknowledged) >= ACKNOWLEDGED;
  const until = async (work: (count: number) => Promise<unknown>) => {
    for (let count = 0; !isOver(); count++) await work(count);
  };
  await Promise.all([
    ...files.map((own, index) =>
      until((count) =>
        count % 3 === 2
          ? own.remove(storeOf(index + count), Math.floor(Math.random() * 4))
          : own.write(storeOf(index + count), count),
      ),
    ),
    ...files.map((own, index) => until((count) => own.verify(storeOf(index + count), count, WHOLE))),
    until(tidyEach),
    until(tidyEach),
    until(async () => {
      await pause(Math.random() * 300);
      bucket.settle();
    }),
  ]);
  bucket.fault = () => undefined;
  bucket.settle();

  const names = async () => {
    const { rows } = await pool.query<{ name: string }>('SELECT name FROM davgate.block_name');
    return rows.map(({ name }) => name).sort();
  };
  const kept = () =>
    [...bucket.objects.keys()].flatMap((key) => /[0-9a-f]{64}-[0-9a-f]+$/.exec(key)?.[0] ?? []).sort();
  const onlyNeeded = () =>
    eventually(async () => {
      await tidyEach();
      expect(kept()).toEqual(await names());
    });
  await onlyNeeded();
  for (const own of files) for (const store of stores) await own.verifyAll(store);
  for (const own of files) await own.removeAll(storeOf(0));
  await onlyNeeded();
  expect(kept()).toEqual([]);
  process.stdout.write(
    `collector: ${sum((one) => one.acknowledged)} changes acknowledged, ${sum((one) => one.unanswered)} to repeat\n`,
  );
});

const WHOLE = { start: 0, end: 1 };

/** The files of a home. */
class StorageFiles implements FileStore {
  constructor(private readonly storage: Storage) {}

  async write(path: string, text: string): Promise<typeof UNANSWERED | 'done'> {
    const change = commit(path, { mode: { tag: 'overwrite' } });
    return await changed(this.storage.upload(HOME, change, body(text)));
  }

  async remove(path: string): Promise<typeof UNANSWERED | 'done'> {
    return await changed(
      this.storage.removeForever(HOME, path).catch((failure: unknown) => {
        if (!isRefusal(failure, 'lookup/not_found')) throw failure;
      }),
    );
  }

  async read(path: string, part: Part): Promise<string | typeof ABSENT | typeof UNANSWERED> {
    const file = await this.#find(path);
    if (!file) return ABSENT;
    try {
      return (await bytesOf(this.storage.read(HOME, file, part))).toString();
    } catch (failure) {
      if (isPassing(failure)) return UNANSWERED;
      // It may have been removed meanwhile, with its block: a reader has as long as an upload.
      const isEnded = failure instanceof DamagedBlockError || isRefusal(failure, 'lookup/not_found');
      if (isEnded && (await this.#find(path))?.rev !== file.rev) return UNANSWERED;
      throw failure;
    }
  }

  async #find(path: string) {
    const found = await this.storage.stat(HOME, path, false).catch((failure: unknown) => {
      if (!isRefusal(failure, 'lookup/not_found')) throw failure;
    });
    return found?.kind === 'file' ? found : undefined;
  }
}

async function changed(change: Promise<unknown>): Promise<typeof UNANSWERED | 'done'> {
  try {
    await change;
    return 'done';
  } catch (failure) {
    if (isPassing(failure)) return UNANSWERED;
    throw failure;
  }
}

/** Whether the bucket has failed, or a block was removed because its upload took too long. */
function isPassing(failure: unknown): boolean {
  return isRefusal(failure, 'write/too_many_write_operations') || isBucketFailure(failure);
}

function isRefusal(failure: unknown, message: string): boolean {
  return failure instanceof Error && failure.message === message;
}

function isBucketFailure(failure: unknown): boolean {
  return failure instanceof Error && failure.name === 'BucketError';
}

/** Two collectors at once may also wait for each other's rows. */
function expectPassing(failure: unknown): void {
  if (!isBucketFailure(failure) && !isConnectionLost(failure)) throw failure;
}
