import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type ListingScope, type Storage, StorageError } from '../../../src/service/storage/storage.ts';
import { effort, testSeed } from '../../support/effort.ts';
import { HOME, OWNER, opened, put } from '../storage/opened.ts';
import { Mirror } from './mirror.ts';

const OPERATIONS = effort(250);

/** Minimum number of steps of a run. */
const STEPS_MIN = 25;

/** Few names and levels, so that folders reuse the paths of removed ones. */
const name = fc.constantFrom('a', 'b', 'c');
const path = fc.array(name, { minLength: 1, maxLength: 3 }).map((names) => `/${names.join('/')}`);

/** The folder that a follower reads, whether it begins before the first change, and its page size. */
const scope = fc.record({
  path: fc.constantFrom('', '', '', '/a', '/a/b'),
  recursive: fc.constantFrom(true, true, false),
  beginsEmpty: fc.boolean(),
  limit: fc.oneof(fc.constantFrom(1, 2, 3), fc.integer({ min: 1, max: 20 })),
});

const step = fc.oneof(
  { weight: 5, arbitrary: fc.record({ do: fc.constant('file' as const), path }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('folder' as const), path }) },
  { weight: 5, arbitrary: fc.record({ do: fc.constant('remove' as const), path }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('forever' as const), path }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('move' as const), path, to: path }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('copy' as const), path, to: path }) },
  { weight: 8, arbitrary: fc.record({ do: fc.constant('page' as const), follower: fc.nat(7) }) },
);

type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;
type Scope = typeof scope extends fc.Arbitrary<infer T> ? T : never;

/** A client that reads one page at a time and applies it as service-api.md §9.4 requires. */
class PagingFollower {
  #mirror = new Mirror();
  readonly #scope: ListingScope;
  #cursor: string | undefined;

  constructor(
    private readonly storage: Storage,
    private readonly asked: Scope,
    run: string,
  ) {
    this.#scope = { path: run + asked.path, recursive: asked.recursive, includeDeleted: false };
  }

  /** Reads a page. Returns whether there are more; a missing folder has none. */
  async page(): Promise<boolean> {
    const { storage, asked } = this;
    try {
      const page =
        this.#cursor === undefined
          ? await storage.list(OWNER, this.#scope, asked.limit)
          : await storage.listContinue(OWNER, this.#cursor);
      // The first page of a listing has the folder itself in addition.
      expect(page.entries.length).toBeLessThanOrEqual(asked.limit + 1);
      for (const { kind, pathLower } of page.entries) this.#mirror.apply(kind, pathLower);
      this.#cursor = page.cursor;
      return page.hasMore;
    } catch (failure) {
      if (failure instanceof StorageError && failure.refusal.kind === 'lookup') return false;
      if (failure instanceof StorageError && failure.refusal.tag === 'reset') return this.#startOver();
      throw failure;
    }
  }

  #startOver(): boolean {
    this.#mirror = new Mirror();
    this.#cursor = undefined;
    return true;
  }

  /** Reads the remaining pages and compares the result with a new listing. */
  async finish(): Promise<void> {
    while (await this.page());
    const isShown = (known: string) => known.startsWith(`${this.#scope.path}/`);
    if (await this.isThere()) expect(this.#mirror.paths.filter(isShown)).toEqual(await this.#expected());
  }

  async isThere(): Promise<boolean> {
    try {
      return (await this.storage.stat(HOME, this.#scope.path, false)).kind === 'folder';
    } catch {
      return false;
    }
  }

  /** Returns the paths of a new listing. */
  async #expected(): Promise<string[]> {
    const { entries } = await this.storage.list(OWNER, this.#scope, 2000);
    const paths = entries.map(({ pathLower }) => pathLower);
    return paths.filter((known) => known !== this.#scope.path).sort();
  }
}

/** A file outside the folders of all runs. */
const FILE = '/a file';

/** Starts a change. Consecutive changes share a transaction, and so a flush to disk. */
async function change(storage: Storage, run: string, step: Exclude<Step, { do: 'page' }>): Promise<void> {
  const at = run + step.path;
  try {
    if (step.do === 'file') await storage.relocate(HOME, FILE, at, { copy: true, autorename: false });
    else if (step.do === 'folder') await storage.createFolder(HOME, at, false);
    else if (step.do === 'remove') await storage.remove(HOME, at);
    else if (step.do === 'forever') await storage.removeForever(HOME, at);
    else await storage.relocate(HOME, at, run + step.to, { copy: step.do === 'copy', autorename: false });
  } catch (failure) {
    if (!(failure instanceof StorageError)) throw failure;
  }
}

/** Runs the steps. All changes before a page are complete when it is read. */
async function play(
  storage: Storage,
  run: string,
  steps: readonly Step[],
  followers: readonly PagingFollower[],
): Promise<void> {
  const asked: Promise<void>[] = [];
  for (const step of steps) {
    if (step.do !== 'page') asked.push(change(storage, run, step));
    else {
      await Promise.all(asked.splice(0));
      await followers[step.follower]?.page();
    }
  }
  await Promise.all(asked);
}

test.each([200, 3, 1])(
  'a client that reads the changes page by page has the whole tree at the end, with %i rows of a removed or relocated tree a transaction',
  async (rowsMax) => {
    const storage = await opened({ removedRowsMax: rowsMax, stagedRowsMax: rowsMax });
    await put(storage, FILE, 'text');
    let runs = 0;
    let taken = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.array(scope, { minLength: 8, maxLength: 8 }),
        fc.array(step, { minLength: STEPS_MIN, maxLength: 100, size: 'max' }),
        async (scopes, steps) => {
          const run = `/run${runs++}`;
          await storage.createFolder(HOME, run, false);
          const followers = scopes.map((one) => new PagingFollower(storage, one, run));
          for (const [index, { beginsEmpty }] of scopes.entries())
            if (beginsEmpty) await followers[index]?.page();
          await play(storage, run, steps, followers);
          taken += steps.length;
          for (const follower of followers) await follower.finish();
        },
      ),
      { numRuns: Math.ceil(OPERATIONS / STEPS_MIN), seed: testSeed() },
    );
    expect(taken).toBeGreaterThanOrEqual(OPERATIONS);
  },
);
