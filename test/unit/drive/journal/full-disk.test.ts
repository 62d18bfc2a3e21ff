import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openBlockCache } from '../../../../src/drive/content/block-cache.ts';
import { type OpenDrive, openDrive } from '../../../../src/drive/drive.ts';
import { type Journal, JournalFull, type Journals } from '../../../../src/state/journal.ts';
import { openSqliteJournals } from '../../../../src/state/sqlite/journal/journals.ts';
import { silentLog } from '../../../../src/util/log.ts';
import { faultOf } from '../../../support/fault-of.ts';
import { ManualClock } from '../../../support/manual-clock.ts';
import { bodyOf } from '../../../support/memory-drive.ts';
import { at, MemoryRemote } from '../../../support/memory-remote.ts';
import { memoryState } from '../../../support/memory-state.ts';
import { unhurried } from '../../../support/unhurried.ts';

let directory: string;
let journals: Journals;
let files: OpenDrive;
/** The step of the journal that fails because the disk is full. */
let failing: 'stage' | 'accept' | undefined;
let discarded: number;
/** Runs while the journal accepts a write. */
let whileAccepting: () => void;

/** Returns `journal` with `stage` and `accept` failing where `failing` says so. */
function onFullDisk(journal: Journal): Journal {
  const fail = async (step: typeof failing): Promise<void> => {
    if (failing === step) throw new JournalFull('the disk is full');
  };
  return {
    all: () => journal.all(),
    async stage(body) {
      await fail('stage');
      return journal.stage(body);
    },
    discard(body) {
      discarded += 1;
      return journal.discard(body);
    },
    async accept(...accepted) {
      whileAccepting();
      await fail('accept');
      return journal.accept(...accepted);
    },
    change: (write) => journal.change(write),
    forget: (...forgotten) => journal.forget(...forgotten),
    read: (...wanted) => journal.read(...wanted),
    lose: (...lost) => journal.lose(...lost),
    lost: () => journal.lost(),
    readLost: (name) => journal.readLost(name),
    dropLost: (name) => journal.dropLost(name),
    lostFiles: 0,
  };
}

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'davgate-full-disk-'));
  const clock = new ManualClock();
  const log = silentLog;
  const folders = { journal: join(directory, 'journal'), lostAndFound: join(directory, 'lost-and-found') };
  journals = await openSqliteJournals(folders, log);
  const cache = await openBlockCache({
    directory: join(directory, 'cache'),
    sizeBytesMax: 2 ** 26,
    clock,
    log,
  });
  const journal = onFullDisk(await journals.drive('d'));
  const tools = { remote: new MemoryRemote(), state: memoryState(), cache, clock, log };
  files = await openDrive({ ...tools, journal, deletePolicy: 'auto' });
  failing = undefined;
  discarded = 0;
  whileAccepting = () => {};
});

afterEach(async () => {
  await files.close(unhurried());
  await journals.close();
  await rm(directory, { recursive: true });
});

const write = (text: string) => files.write(at('/a'), bodyOf(text), { mode: { if: 'any' } });

test.each([
  ['a file', () => write('text')],
  ['an empty file', () => write('')],
  ['an empty file that waits for its body', () => files.keepPlaceholder(at('/a'), 60_000)],
] as const)(
  "%s for which the journal's disk has no room is refused with no-space and leaves nothing behind",
  async (_, make) => {
    for (const step of ['stage', 'accept'] as const) {
      failing = step;
      discarded = 0;
      expect(await faultOf(make())).toBe('no-space');
      expect(discarded).toBe(step === 'accept' ? 1 : 0);
      expect(await files.stat(at('/a'))).toBeUndefined();
    }
    failing = undefined;
    expect((await make()).created).toBe(true);
  },
);

test("a request for versions that waits for a write is answered when the journal's disk has no room for the write", async () => {
  let asked: Promise<unknown> | undefined;
  whileAccepting = () => {
    asked = faultOf(files.history.versions(at('/a')));
  };
  failing = 'accept';
  expect(await faultOf(write('text'))).toBe('no-space');
  expect(await asked).toBe('not-found');
});
