import { rm } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { type Disk, localDisk } from '../../../src/service/storage/blocks/disk.ts';
import { openStorage } from '../../../src/service/storage/open.ts';
import { type Storage, StorageError, type StoredFile } from '../../../src/service/storage/storage.ts';
import { silentLog } from '../../../src/util/log.ts';
import { pseudoRandomBytes } from '../../support/bytes.ts';
import { effort, testSeed } from '../../support/effort.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { randomOf } from './crash-content.mjs';
import { expectSound } from './invariants.ts';
import { body, bytesOf, commit, HOME, OWNER, temporaryFolder } from './opened.ts';

const EPOCHS = effort(2);
const STEPS = 60;
const WORKERS = 8;
const DAY_MS = 24 * 60 * 60 * 1000;

/** Few contents, each one block file, so that workers commit again what others remove. */
const CONTENTS = Array.from({ length: 10 }, (_, index) => pseudoRandomBytes(66_000 + index, index + 1));

/** Duration of a slow removal in turns of the event loop: long enough for a whole upload. */
const SLOW_REMOVAL_TURNS = 60;

/**
 * A disk whose steps take random time, so that commits and the collector run in every order. Some removals
 * fail while `isFailing`, after which the collector scans all files.
 */
function slowDisk(random: (bound: number) => number, isFailing: () => boolean): Disk {
  const later = async <T>(work: () => Promise<T>, turnsMax = 4): Promise<T> => {
    for (let turns = random(turnsMax); turns > 0; turns--)
      await new Promise((resolve) => setImmediate(resolve));
    return await work();
  };
  return {
    ...localDisk,
    create: (path) => later(() => localDisk.create(path)),
    rename: (from, to) => later(() => localDisk.rename(from, to)),
    remove: (path) =>
      later(() => {
        if (!isFailing() || !path.includes('blocks') || random(10) > 0) return localDisk.remove(path);
        throw Object.assign(new Error('the disk fails'), { code: 'EIO' });
      }, SLOW_REMOVAL_TURNS),
    syncFolder: (path) => later(() => localDisk.syncFolder(path)),
  };
}

test('the block collector beside random work removes no block that is in use', async () => {
  const seed = testSeed();
  process.stdout.write(`collector test: seed ${seed}\n`);
  const random = randomOf(seed);
  const dataDirectory = await temporaryFolder();
  const clock = new ManualClock();
  let readable = 0;
  for (let epoch = 0; epoch < EPOCHS; epoch++) {
    let working = true;
    const disk = slowDisk(random, () => working);
    const storage = await openStorage({ dataDirectory, clock, log: silentLog, disk });
    await storage.createNamespace(HOME, 2 ** 40);
    const run = new Run(storage, random);
    const collector = (async () => {
      for (; working; await new Promise((resolve) => setImmediate(resolve)))
        await storage.tidy().catch((failure: unknown) => expect(failure).toMatchObject({ code: 'EIO' }));
    })();
    await Promise.all(Array.from({ length: WORKERS }, (_, worker) => run.work(worker)));
    working = false;
    await collector;
    readable += await run.expectAllReadable();
    // Lets deleted, overwritten and unfinished contents expire.
    if (random(3) === 0) await clock.advance(random(200) * DAY_MS);
    await storage.tidy();
    await run.expectAllReadable();
    await storage.close();
    expectSound(dataDirectory);
  }
  expect(readable).toBeGreaterThan(EPOCHS);
  await rm(dataDirectory, { recursive: true });
});

/** Random work on one open storage. Every file must always read as one of the contents. */
class Run {
  constructor(
    private readonly storage: Storage,
    private readonly random: (bound: number) => number,
  ) {}

  async work(worker: number): Promise<void> {
    for (let step = 0; step < STEPS; step++) {
      try {
        await this.#step(`/w${worker}`);
      } catch (failure) {
        if (!(failure instanceof StorageError)) throw failure;
      }
    }
  }

  async #step(folder: string): Promise<void> {
    const { storage, random } = this;
    const path = `${folder}/f${random(2)}`;
    const other = `/w${random(WORKERS)}/f${random(2)}`;
    const overwriting = commit(path, { mode: { tag: 'overwrite' } });
    switch (random(12)) {
      case 0:
      case 1:
        return void (await storage.upload(HOME, overwriting, this.#body()));
      case 2:
        return await this.#session(overwriting);
      case 3:
        return void (await storage.startSession(HOME, 'sequential', this.#body(), random(2) === 0));
      case 4:
        return void (await storage.remove(HOME, path));
      case 5:
        return void (await storage.relocate(HOME, other, path, { copy: random(2) === 0, autorename: true }));
      case 6:
        return await this.#restore(other);
      case 7:
        return await this.#read(other);
      default:
        // Frequent, because otherwise the history keeps every block.
        return await storage.removeForever(HOME, random(3) === 0 ? folder : other);
    }
  }

  async #session(target: Parameters<Storage['finishSession']>[2]): Promise<void> {
    const { storage } = this;
    const bytes = this.#content();
    const half = Math.floor(bytes.length / 2);
    const session = await storage.startSession(HOME, 'sequential', body(bytes.subarray(0, half)), false);
    const end = body(bytes.subarray(half));
    await storage.finishSession(HOME, { session, offset: half }, target, end);
  }

  async #restore(path: string): Promise<void> {
    const { entries } = await this.storage.revisions(HOME, path, { by: 'path', limit: 10 });
    const { rev = '' } = entries[this.random(Math.max(1, entries.length))] ?? {};
    await this.storage.restore(HOME, path, rev);
  }

  /** A file that is removed during a read is read to its end. */
  async #read(path: string): Promise<void> {
    const found = await this.storage.stat(HOME, path, false);
    if (found.kind === 'file') await this.#expectReadable(found);
  }

  /** Reads every revision of every file. Returns their number. */
  async expectAllReadable(): Promise<number> {
    let count = 0;
    const scope = { path: '', recursive: true, includeDeleted: true };
    for (const { kind, pathLower } of (await this.storage.list(OWNER, scope, 2000)).entries) {
      if (kind === 'folder') continue;
      const revisions = async () =>
        (await this.storage.revisions(HOME, pathLower, { by: 'path', limit: 100 })).entries;
      const entries = await Promise.resolve()
        .then(revisions)
        .catch((failure: unknown) => {
          if (failure instanceof StorageError) return [];
          throw failure;
        });
      for (const entry of entries) await this.#expectReadable(entry);
      count += entries.length;
    }
    return count;
  }

  async #expectReadable(file: StoredFile): Promise<void> {
    const bytes = await bytesOf(this.storage.read(HOME, file, undefined));
    const is = CONTENTS.some((content) => content.equals(bytes));
    expect(is, `${file.pathDisplay} (${file.rev}) is whole`).toBe(true);
  }

  #content(): Buffer {
    return CONTENTS[this.random(CONTENTS.length)] ?? Buffer.alloc(0);
  }

  #body(): ReturnType<typeof body> {
    return body(this.#content());
  }
}
