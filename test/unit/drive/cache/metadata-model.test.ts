import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ApiError } from '../../../../src/api/errors.ts';
import { FileError } from '../../../../src/drive/errors.ts';
import type { Entry } from '../../../../src/drive/files.ts';
import { isWithin, type Path, ROOT } from '../../../../src/util/path.ts';
import type { Gate } from '../../../support/call-script.ts';
import { effort } from '../../../support/effort.ts';
import { MemoryDrive, turn } from '../../../support/memory-drive.ts';
import { at } from '../../../support/memory-remote.ts';

const PLACES = ['/a', '/b', '/f', '/g', '/f/a', '/f/b', '/g/a', '/f/d', '/f/d/a'].map(at);

const place = fc.constantFrom(...PLACES);
const step = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant('write' as const), path: place, by: fc.boolean() }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('remove' as const), path: place, by: fc.boolean() }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('folder' as const), path: place, by: fc.boolean() }) },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('move' as const), path: place, to: place, by: fc.boolean() }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant('list' as const), path: fc.constantFrom(ROOT, ...PLACES) }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('stat' as const), path: place }) },
  { weight: 1, arbitrary: fc.constant({ do: 'walk' as const }) },
  { weight: 1, arbitrary: fc.constant({ do: 'hold the feed' as const }) },
  { weight: 1, arbitrary: fc.constant({ do: 'let the feed tell' as const }) },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('hold' as const), call: fc.constantFrom('stat', 'list') }),
  },
  { weight: 2, arbitrary: fc.constant({ do: 'release' as const }) },
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

/** Returns true for a `FileError`. A `broken` fault, or any other error, is a defect and is thrown. */
async function refused(work: Promise<unknown>): Promise<boolean> {
  try {
    await work;
    return false;
  } catch (error) {
    if (error instanceof FileError && error.fault !== 'broken') return true;
    throw error;
  }
}

/** One run: changes made elsewhere go directly to the service, our own through the drive. */
class Run {
  readonly #gates: Gate[] = [];
  readonly #reads: Promise<unknown>[] = [];
  /** Paths that we have changed and no other client has changed since. */
  readonly #ours = new Set<Path>();
  #count = 0;

  constructor(readonly drive: MemoryDrive) {}

  async take(next: Step): Promise<void> {
    await this.#do(next);
    await this.#besideReads(this.#checkOurs());
  }

  /** Expects every path in `#ours` to be as we left it, whatever older states the feed reports. */
  async #checkOurs(): Promise<void> {
    for (const path of this.#ours) await this.#expectNow(path);
  }

  async #do(next: Step): Promise<void> {
    const { remote } = this.drive;
    switch (next.do) {
      case 'hold the feed':
        return remote.holdFeed();
      case 'let the feed tell':
        remote.releaseFeed();
        return turn(2);
      case 'hold':
        this.#gates.push(remote.holdNext(next.call as 'stat' | 'list', 'end'));
        return;
      case 'release':
        return this.release();
      case 'stat':
      case 'list':
      case 'walk':
        this.#read(next);
        return turn();
      default:
        if (!next.by) return this.#changeElsewhere(next);
        return this.#besideReads(this.#change(next));
    }
  }

  async release(): Promise<void> {
    for (const gate of this.#gates.splice(0)) gate.release();
    this.drive.remote.forgetGates();
    await Promise.all(this.#reads.splice(0));
  }

  /** Releases all pending answers and lets the feed report every change. */
  async settle(): Promise<void> {
    await this.release();
    this.drive.remote.releaseFeed();
    await turn(50);
    // The feed pauses after a call without changes.
    await this.drive.clock.advance(1_000);
    await turn(400);
  }

  #read(next: Step): void {
    const { files } = this.drive;
    const walk = async () => {
      for await (const _listing of files.walk(ROOT)) await turn();
    };
    if (next.do === 'walk') this.#reads.push(refused(walk()));
    if (next.do === 'stat') this.#reads.push(refused(files.stat(next.path)));
    if (next.do === 'list') this.#reads.push(refused(files.list(next.path)));
  }

  /** Runs a change while reads are in flight, and releases them only if the change waits for one of them. */
  async #besideReads(change: Promise<void>): Promise<void> {
    let isDone = false;
    const done = change.finally(() => {
      isDone = true;
    });
    for (let count = 0; count < 30 && !isDone; count++) await turn();
    while (!isDone) {
      await this.release();
      await turn();
    }
    await done;
  }

  /** Makes one of our changes and expects its result to be visible at once. */
  async #change(next: Step): Promise<void> {
    const { drive } = this;
    this.#count++;
    if (next.do === 'write' && !(await refused(drive.write(next.path, `ours ${this.#count}`))))
      await this.#expectNow(next.path);
    if (next.do === 'remove' && !(await refused(drive.files.remove(next.path, { recoverable: true }))))
      await this.#expectNow(next.path);
    if (next.do === 'folder' && !(await refused(drive.files.createFolder(next.path))))
      await this.#expectNow(next.path);
    if (next.do !== 'move') return;
    if (await refused(drive.files.move(next.path, next.to, { overwrite: true }))) return;
    await this.#expectNow(next.path);
    await this.#expectNow(next.to);
  }

  async #expectNow(path: Path): Promise<void> {
    this.#ours.add(path);
    expect(essence(await this.drive.files.stat(path))).toEqual(essence(this.drive.remote.entryAt(path)));
  }

  #changeElsewhere(next: Step): void {
    const { remote } = this.drive;
    this.#count++;
    const touched = next.do === 'move' ? [next.path, next.to] : 'path' in next ? [next.path] : [];
    for (const path of this.#ours)
      if (touched.some((other) => isWithin(path, other) || isWithin(other, path))) this.#ours.delete(path);
    try {
      if (next.do === 'write') remote.putFile(next.path, `theirs ${this.#count}`);
      if (next.do === 'remove') remote.delete(next.path);
      if (next.do === 'folder') remote.putFolder(next.path);
      if (next.do === 'move') remote.rename(next.path, next.to);
    } catch (error) {
      // Other clients skip what the service refuses.
      if (!(error instanceof ApiError)) throw error;
    }
  }
}

function essence(entry: Entry | undefined) {
  return (
    entry && { kind: entry.kind, id: entry.id, path: entry.path, rev: entry.kind === 'file' ? entry.rev : '' }
  );
}

test("the drive shows the service's exact tree after any mix of local changes, changes elsewhere and delayed answers", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 40 }), async (steps) => {
      const drive = await MemoryDrive.open();
      // One change per page makes the states in between visible.
      drive.remote.pageEntries = 1;
      const run = new Run(drive);
      for (const next of steps) await run.take(next);
      await run.settle();
      const shown: unknown[] = [];
      for await (const { children } of drive.files.walk(ROOT)) shown.push(...children.map(essence));
      const there = drive.remote.paths.map((path) => essence(drive.remote.entryAt(at(path))));
      const byPath = (list: unknown[]) => list.map((each) => JSON.stringify(each)).sort();
      expect(byPath(shown)).toEqual(byPath(there));
      for (const path of PLACES)
        expect(essence(await drive.files.stat(path))).toEqual(essence(drive.remote.entryAt(path)));
      await drive.close();
    }),
    { numRuns: effort(15), endOnFailure: false },
  );
});
