import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type BlockCache, openBlockCache } from '../../src/drive/content/block-cache.ts';
import { type DriveOptions, type OpenDrive, openDrive } from '../../src/drive/drive.ts';
import type { FileEntry, WriteMode, Written } from '../../src/drive/files.ts';
import type { Journal, Journals } from '../../src/state/journal.ts';
import { openSqliteJournals } from '../../src/state/sqlite/journal/journals.ts';
import { openSqliteState } from '../../src/state/sqlite/state.ts';
import type { DriveState, State } from '../../src/state/state.ts';
import { withinGrace } from '../../src/util/grace.ts';
import { type Log, silentLog } from '../../src/util/log.ts';
import type { Path } from '../../src/util/path.ts';
import { joined } from './byte-source.ts';
import type { ManualClock } from './manual-clock.ts';
import { MemoryRemote } from './memory-remote.ts';
import { unhurried } from './unhurried.ts';

type Settings = Partial<
  Pick<
    DriveOptions,
    'deletePolicy' | 'localFilesPolicy' | 'metadataBytesMax' | 'feedEveryMs' | 'journalLimits' | 'spool'
  >
> & {
  /** Writes are acknowledged when they are in a journal. */
  readonly writeBack?: boolean;
};

/** A drive over a service in memory, with its state on disk and a manual clock. */
export class MemoryDrive {
  readonly remote: MemoryRemote;
  readonly clock: ManualClock;
  readonly warnings: string[] = [];
  readonly #directory = mkdtempSync(join(tmpdir(), 'davgate-drive-'));
  #settings: Settings;
  #state: State;
  #journals: Journals | undefined;
  #journal: Journal | undefined;
  #cache: BlockCache | undefined;
  #files: OpenDrive | undefined;

  private constructor(remote: MemoryRemote, settings: Settings) {
    this.remote = remote;
    this.clock = remote.clock;
    this.#settings = settings;
    this.#state = openSqliteState({ directory: join(this.#directory, 'state') });
  }

  /** Opens a drive and waits until its change feed is alive. */
  static async open(remote = new MemoryRemote(), settings: Settings = {}): Promise<MemoryDrive> {
    const drive = new MemoryDrive(remote, settings);
    await drive.start();
    return drive;
  }

  get files(): OpenDrive {
    if (!this.#files) throw new Error('the drive is not open');
    return this.#files;
  }

  /** The journal of the drive, whose methods a test may replace. */
  get journal(): Journal {
    if (!this.#journal) throw new Error('the drive has no journal');
    return this.#journal;
  }

  get state(): DriveState {
    return this.#state.drive('d');
  }

  /** Changes the settings from the next start on. */
  use(settings: Settings): void {
    this.#settings = { ...this.#settings, ...settings };
  }

  get #journalDirectories() {
    const [journal, lostAndFound] = ['journal', 'lost-and-found'].map((name) => join(this.#directory, name));
    return { journal: journal ?? '', lostAndFound: lostAndFound ?? '' };
  }

  async start(): Promise<void> {
    const { remote, clock } = this;
    const log: Log = { ...silentLog, warn: (event) => void this.warnings.push(event) };
    await this.#cache?.close();
    this.#cache = await openBlockCache({
      directory: join(this.#directory, 'cache'),
      sizeBytesMax: 2 ** 26,
      clock,
      log,
    });
    const { writeBack, ...settings } = this.#settings;
    if (writeBack) this.#journals ??= await openSqliteJournals(this.#journalDirectories, log);
    const journal = await this.#journals?.drive('d');
    this.#journal = journal;
    const options = {
      remote,
      state: this.state,
      cache: this.#cache,
      clock,
      log,
      deletePolicy: 'auto' as const,
      // Changes of other clients are read without advancing the clock.
      feedEveryMs: 0,
      ...settings,
      ...(journal && { journal }),
    };
    this.#files = await openDrive(options);
    if (remote.isReachable) await this.untilAlive();
  }

  /** Simulates a kill: keeps the state on disk and drops everything in memory. */
  kill(): void {
    this.#files = undefined;
    this.remote.forgetClient();
    const directory = join(this.#directory, 'state');
    void this.#state.close();
    void this.#journals?.close();
    this.#journals = undefined;
    this.#state = openSqliteState({ directory });
  }

  /** Resolves when the change feed is alive. */
  async untilAlive(): Promise<void> {
    while (!this.files.status().isFeedAlive) await turn();
  }

  /** Releases a held feed and lets its changes be applied. */
  async feedTold(): Promise<void> {
    this.remote.releaseFeed();
    await turn(50);
  }

  /** Returns the calls of the service during `work`, without those of the change feed. */
  async questionsOf(work: () => Promise<unknown>): Promise<string[]> {
    const before = this.remote.calls.length;
    await work();
    return this.remote.calls
      .slice(before)
      .filter(({ call }) => !['awaitChange', 'changesSince', 'latestCursor'].includes(call))
      .map(({ call, path }) => `${call} ${path}`);
  }

  /** Resolves when no write is pending. */
  async untilLanded(): Promise<void> {
    while (this.files.depth().files > 0) await turn();
  }

  /** Returns the ids of the pending writes in the order in which they were accepted. */
  async pendingIds(): Promise<string[]> {
    const journal = await this.#journals?.drive('d');
    return ((await journal?.all()) ?? []).map(({ id }) => id);
  }

  /** Returns the text and the reason of each file in the lost-and-found folder. */
  lost(): { text: string; reason: string }[] {
    const folder = join(this.#directory, 'lost-and-found', 'd');
    const read = (name: string) => readFileSync(join(folder, name), 'utf8');
    const names = readdirSync(folder).filter((name) => !name.endsWith('.reason.txt'));
    return names.map((name) => ({ text: read(name), reason: read(`${name}.reason.txt`) }));
  }

  write(path: Path, text: string, mode: WriteMode = { if: 'any' }): Promise<Written> {
    return this.files.write(path, bodyOf(text), { mode, sizeBytes: Buffer.byteLength(text) });
  }

  /** Writes a file. Returns its entry. */
  async put(path: Path, text: string, mode?: WriteMode): Promise<FileEntry> {
    const { entry } = await this.write(path, text, mode);
    if (entry.kind !== 'file') throw new Error(`${path} is no file`);
    return entry;
  }

  async fileAt(path: Path): Promise<FileEntry> {
    const entry = await this.files.stat(path);
    if (entry?.kind !== 'file') throw new Error(`${path} is no file`);
    return entry;
  }

  async text(path: Path): Promise<string> {
    const entry = await this.fileAt(path);
    const bytes = await joined(this.files.read(entry, undefined, new AbortController().signal));
    return bytes.toString();
  }

  async names(path: Path): Promise<string[]> {
    return (await this.files.list(path)).children.map(({ name }) => name).sort();
  }

  /** Closes the drive within davgate's grace time. */
  end(): Promise<void> {
    return withinGrace({ clock: this.clock, log: silentLog }, (over) => this.files.close(over));
  }

  async close(): Promise<void> {
    // A failed test may have left calls held, for which the drive would wait.
    this.remote.openGates();
    await this.#files?.close(unhurried());
    await this.#cache?.close();
    await this.#state.close();
    await this.#journals?.close();
    rmSync(this.#directory, { recursive: true });
  }
}

/** Returns the fields of a file that a client may compare before and after its write is committed. */
export const seen = ({ path, name, rev, sizeBytes, modifiedMs }: FileEntry) => ({
  ...{ path, name, rev, sizeBytes, modifiedMs },
});

export async function* bodyOf(...texts: string[]): AsyncIterable<Uint8Array> {
  for (const text of texts) yield Buffer.from(text);
}

/** Waits for turns of the event loop. */
export async function turn(times = 1): Promise<void> {
  for (let count = 0; count < times; count++) await new Promise<void>((resolve) => setImmediate(resolve));
}
