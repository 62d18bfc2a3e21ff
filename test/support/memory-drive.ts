import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type BlockCache, openBlockCache } from '../../src/drive/content/block-cache.ts';
import { type DriveOptions, type OpenDrive, openDrive } from '../../src/drive/drive.ts';
import type { FileEntry, WriteMode, Written } from '../../src/drive/files.ts';
import type { Journals } from '../../src/state/journal.ts';
import { openSqliteJournals } from '../../src/state/sqlite/journal/journals.ts';
import { openSqliteState } from '../../src/state/sqlite/state.ts';
import type { DriveState, State } from '../../src/state/state.ts';
import { withinGrace } from '../../src/util/grace.ts';
import { type Log, silentLog } from '../../src/util/log.ts';
import type { Path } from '../../src/util/path.ts';
import type { ManualClock } from './manual-clock.ts';
import { MemoryRemote } from './memory-remote.ts';
import { unhurried } from './unhurried.ts';

type Settings = Partial<
  Pick<
    DriveOptions,
    'deletePolicy' | 'keepsLocalFiles' | 'metadataBytesMax' | 'feedEveryMs' | 'journalLimits'
  >
> & {
  /** Writes are acknowledged when they are in a journal. */
  readonly writeBack?: boolean;
};

/** A drive over a service in memory, with a real state on disk and time that a test turns by hand. */
export class MemoryDrive {
  readonly remote: MemoryRemote;
  readonly clock: ManualClock;
  readonly warnings: string[] = [];
  readonly #directory = mkdtempSync(join(tmpdir(), 'davgate-drive-'));
  #settings: Settings;
  #state: State;
  #journals: Journals | undefined;
  #cache: BlockCache | undefined;
  #files: OpenDrive | undefined;

  private constructor(remote: MemoryRemote, settings: Settings) {
    this.remote = remote;
    this.clock = remote.clock;
    this.#settings = settings;
    this.#state = openSqliteState({ directory: join(this.#directory, 'state') });
  }

  /** Opened, and following the feed. */
  static async open(remote = new MemoryRemote(), settings: Settings = {}): Promise<MemoryDrive> {
    const drive = new MemoryDrive(remote, settings);
    await drive.start();
    return drive;
  }

  get files(): OpenDrive {
    if (!this.#files) throw new Error('the drive is not open');
    return this.#files;
  }

  get state(): DriveState {
    return this.#state.drive('d');
  }

  /** From the next start on. */
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
    const options = {
      remote,
      state: this.state,
      cache: this.#cache,
      clock,
      log,
      deletePolicy: 'auto' as const,
      // A test need not turn the clock for what others change to be seen.
      feedEveryMs: 0,
      ...settings,
      ...(journal && { journal }),
    };
    this.#files = await openDrive(options);
    if (remote.isReachable) await this.untilAlive();
  }

  /** What a kill leaves: the state, and nothing of what was in memory. */
  kill(): void {
    this.#files = undefined;
    this.remote.forgetClient();
    const directory = join(this.#directory, 'state');
    void this.#state.close();
    void this.#journals?.close();
    this.#journals = undefined;
    this.#state = openSqliteState({ directory });
  }

  /** Resolves when the feed has told all that has happened so far. */
  async untilAlive(): Promise<void> {
    while (!this.files.status().isFeedAlive) await turn();
  }

  /** Lets the feed tell all that has happened. */
  async feedTold(): Promise<void> {
    this.remote.releaseFeed();
    await turn(50);
  }

  /** What the questions to the service are during `work`, those of the feed left out. */
  async questionsOf(work: () => Promise<unknown>): Promise<string[]> {
    const before = this.remote.calls.length;
    await work();
    return this.remote.calls
      .slice(before)
      .filter(({ call }) => !['awaitChange', 'changesSince', 'latestCursor'].includes(call))
      .map(({ call, path }) => `${call} ${path}`);
  }

  /** Resolves when nothing is pending any more; the test's own time limit ends it. */
  async untilLanded(): Promise<void> {
    while (this.files.depth().files > 0) await turn();
  }

  /** What lies in the lost-and-found folder: the text of each file, and the reason beside it. */
  lost(): { text: string; reason: string }[] {
    const folder = join(this.#directory, 'lost-and-found', 'd');
    const read = (name: string) => readFileSync(join(folder, name), 'utf8');
    const names = readdirSync(folder).filter((name) => !name.endsWith('.reason.txt'));
    return names.map((name) => ({ text: read(name), reason: read(`${name}.reason.txt`) }));
  }

  write(path: Path, text: string, mode: WriteMode = { if: 'any' }): Promise<Written> {
    return this.files.write(path, bodyOf(text), { mode, sizeBytes: Buffer.byteLength(text) });
  }

  /** Writes a file. Returns what it is then. */
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
    const chunks: Uint8Array[] = [];
    for await (const chunk of this.files.read(entry, undefined, new AbortController().signal))
      chunks.push(chunk);
    return Buffer.concat(chunks).toString();
  }

  async names(path: Path): Promise<string[]> {
    return (await this.files.list(path)).children.map(({ name }) => name).sort();
  }

  /** Ends the drive, in the time that davgate has for that. */
  end(): Promise<void> {
    return withinGrace({ clock: this.clock, log: silentLog }, (over) => this.files.close(over));
  }

  async close(): Promise<void> {
    // A test that failed has left them closed, and its drive would wait for them.
    this.remote.openGates();
    await this.#files?.close(unhurried());
    await this.#cache?.close();
    await this.#state.close();
    await this.#journals?.close();
    rmSync(this.#directory, { recursive: true });
  }
}

/** What a client could compare of a file before and after its write has landed. */
export const seen = ({ path, name, rev, sizeBytes, modifiedMs }: FileEntry) => ({
  ...{ path, name, rev, sizeBytes, modifiedMs },
});

export async function* bodyOf(...texts: string[]): AsyncIterable<Uint8Array> {
  for (const text of texts) yield Buffer.from(text);
}

/** Lets everything run that waits for nothing but its turn. */
export async function turn(times = 1): Promise<void> {
  for (let count = 0; count < times; count++) await new Promise<void>((resolve) => setImmediate(resolve));
}
