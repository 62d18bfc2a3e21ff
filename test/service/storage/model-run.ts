import fc from 'fast-check';
import { expect } from 'vitest';
import type { Storage, Stored } from '../../../src/service/storage/storage.ts';
import { effort, testSeed } from '../../support/effort.ts';
import { key, Model, type ModelEntry } from './model.ts';
import { body, commit, HOME, OWNER, textAt } from './opened.ts';

const RUNS = effort(2);
const STEPS_MAX = 60;

const name = fc.constantFrom('a', 'A', 'b.x', '😀');
const path = fc.array(name, { minLength: 1, maxLength: 3 }).map((names) => `/${names.join('/')}`);
const text = fc.constantFrom('', 'one', 'two');
const rev = fc.nat(30);
const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('upload' as const),
      path,
      text,
      mode: fc.oneof(fc.constantFrom('add' as const, 'overwrite' as const), fc.record({ rev })),
      autorename: fc.boolean(),
      strict: fc.boolean(),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('folder' as const), path, autorename: fc.boolean() }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('remove' as const), path }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('forever' as const), path }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('relocate' as const),
      path,
      to: path,
      copy: fc.boolean(),
      autorename: fc.boolean(),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('restore' as const), path, rev }) },
  { weight: 2, arbitrary: fc.constantFrom({ do: 'reopen' as const }, { do: 'follow' as const }) },
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;
type Change = Exclude<Step, { do: 'reopen' | 'follow' }>;

/**
 * Runs random steps on new storages, and expects the outcomes of a model. `begin` returns what opens the storages of a
 * run: several open the same one, and each call goes to another.
 */
export async function expectModel(
  begin: () => Promise<{
    readonly open: () => Promise<readonly Storage[]>;
    /** Called at the end of a run, with its storages closed. */
    readonly end: () => Promise<void>;
  }>,
): Promise<void> {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: STEPS_MAX / 2, maxLength: STEPS_MAX }), async (steps) => {
      const { open, end } = await begin();
      const run = new Run(open);
      await run.open();
      for (const next of steps) await run.take(next);
      await run.follow();
      await run.close();
      await end();
    }),
    // No shrinking, which would take minutes. The seed repeats the run.
    { numRuns: RUNS, seed: testSeed(), endOnFailure: true },
  );
}

/** Runs steps on a storage and its model, with a copy that is built from the changes alone. */
class Run {
  readonly model = new Model();
  /** Revs of the storage by those of the model. */
  readonly revs: string[] = [];
  /** Ids of the storage by those of the model. */
  readonly ids = new Map<number, string>();
  readonly mirror = new Map<string, string>();
  cursor = '';
  #storages: readonly Storage[] = [];
  #calls = 0;

  constructor(private readonly openAll: () => Promise<readonly Storage[]>) {}

  /** The storage for the next call. */
  get storage(): Storage {
    const storage = this.#storages[this.#calls++ % this.#storages.length];
    if (!storage) throw new Error('not open');
    return storage;
  }

  async close(): Promise<void> {
    await Promise.all(this.#storages.map((storage) => storage.close()));
  }

  async open(): Promise<void> {
    this.#storages = await this.openAll();
    await this.storage.createNamespace(HOME, 2 ** 40);
    this.cursor ||= await this.storage.latestCursor(OWNER, {
      path: '',
      recursive: true,
      includeDeleted: false,
    });
  }

  async take(step: Step): Promise<void> {
    if (step.do === 'reopen') {
      await this.close();
      return await this.open();
    }
    if (step.do === 'follow') return this.follow();
    const revisionsBefore = this.model.revisions.at(-1)?.rev ?? -1;
    const expected = this.#expected(step);
    const actual = await this.#actual(step).catch((failure: unknown) => String((failure as Error).message));
    if (typeof expected === 'string' || typeof actual === 'string') expect(actual).toEqual(expected);
    else this.#expectSame(expected, actual);
    await this.#learn(revisionsBefore);
    await this.#expectState();
  }

  #expected(step: Change): ModelEntry | string {
    const { model } = this;
    switch (step.do) {
      case 'upload':
        return model.upload(step.path, step.text, step.mode, step.autorename, step.strict);
      case 'folder':
        return model.createFolder(step.path, step.autorename);
      case 'remove':
        return model.remove(step.path);
      case 'forever':
        return model.removeForever(step.path);
      case 'relocate':
        return model.relocate(step.path, step.to, step.copy, step.autorename);
      case 'restore':
        return model.restore(step.path, step.rev);
    }
  }

  async #actual(step: Change): Promise<Stored | string> {
    const { storage } = this;
    switch (step.do) {
      case 'upload': {
        const mode =
          typeof step.mode === 'object'
            ? { tag: 'update' as const, rev: this.#rev(step.mode.rev) }
            : { tag: step.mode };
        const asked = commit(step.path, { mode, autorename: step.autorename, strictConflict: step.strict });
        return await storage.upload(HOME, asked, body(step.text));
      }
      case 'folder':
        return await storage.createFolder(HOME, step.path, step.autorename);
      case 'remove':
        return await storage.remove(HOME, step.path);
      case 'forever':
        await storage.removeForever(HOME, step.path);
        return 'done';
      case 'relocate':
        return await storage.relocate(HOME, step.path, step.to, step);
      case 'restore':
        return await storage.restore(HOME, step.path, this.#rev(step.rev));
    }
  }

  #rev(index: number): string {
    return this.revs[index] ?? 'abcdef0123';
  }

  #expectSame(expected: ModelEntry, actual: Stored): void {
    expect(actual.pathDisplay).toBe(expected.path);
    expect(actual.kind).toBe(expected.rev === undefined ? 'folder' : 'file');
    const known = this.ids.get(expected.id) ?? actual.id;
    expect(actual.id).toBe(known);
  }

  /** Records the revs and ids that the last step made, and expects ids to be unique. */
  async #learn(revisionsBefore: number): Promise<void> {
    for (const { rev, path } of this.model.revisions) {
      if (rev <= revisionsBefore) continue;
      const made = (await this.storage.revisions(HOME, path, { by: 'path', limit: 1 })).entries[0];
      this.revs[rev] = made?.rev ?? '';
    }
    for (const { path, id } of this.model.entries.values()) {
      const { id: actual } = (await this.storage.stat(HOME, path, false)) as Stored;
      expect(this.ids.get(id) ?? actual).toBe(actual);
      this.ids.set(id, actual);
    }
    expect(new Set(this.ids.values()).size).toBe(this.ids.size);
  }

  async #expectState(): Promise<void> {
    const { storage, model } = this;
    const page = await storage.list(OWNER, { path: '', recursive: true, includeDeleted: true }, 2000);
    const live = page.entries.filter((entry) => entry.kind !== 'deleted').map((entry) => entry.pathDisplay);
    expect(live.sort()).toEqual(model.paths);
    const deleted = page.entries.filter((entry) => entry.kind === 'deleted').map((entry) => entry.pathLower);
    expect(deleted.sort()).toEqual([...model.deleted.keys()].sort());
    for (const entry of model.entries.values())
      if (entry.text !== undefined) {
        expect(await textAt(storage, entry.path)).toBe(entry.text);
        const history = (await storage.revisions(HOME, entry.path, { by: 'path', limit: 100 })).entries;
        expect(history.map(({ sizeBytes }) => sizeBytes)).toEqual(
          model.history(entry.path).map((old) => old.length),
        );
      }
  }

  /** Applies all changes since the last call as service-api.md §9.4 requires of clients. */
  async follow(): Promise<void> {
    for (let hasMore = true; hasMore; ) {
      const page = await this.storage.listContinue(OWNER, this.cursor);
      for (const entry of page.entries) {
        const at = key(entry.pathDisplay);
        if (entry.kind !== 'folder')
          for (const other of [...this.mirror.keys()])
            if (other.startsWith(`${at}/`)) this.mirror.delete(other);
        if (entry.kind === 'deleted') this.mirror.delete(at);
        else this.mirror.set(at, entry.pathDisplay);
      }
      this.cursor = page.cursor;
      hasMore = page.hasMore;
    }
    expect([...this.mirror.values()].sort()).toEqual(this.model.paths);
  }
}
