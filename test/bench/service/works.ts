import { Pollers } from '../../support/pollers.ts';
import type { ServiceProcess } from '../../support/service-process.ts';
import { type Client, inParallel } from './client.ts';
import type { Measured, Setup } from './setup.ts';

const MIB = 1024 * 1024;
const PART_BYTES = 16 * MIB;
const PARTS_AT_ONCE = 4;
const NAMESPACES = 64;
/** Highest processor time of an idle service in half a second, in ms. */
const IDLE_MS = 25;

/** Sizes of the works. */
export interface Sizes {
  /** Small files of the works with uploads, and entries of a batch. */
  readonly files: number;
  /** Small files that each of the namespaces gets. */
  readonly filesOfEach: number;
  /** Files whose metadata is weighed. */
  readonly weighed: number;
  readonly largeParts: number;
  readonly folderEntries: number;
  readonly waiting: number;
  readonly woken: number;
}

export function sizesAt(scale: number): Sizes {
  const share = (count: number) => Math.max(1, Math.round(count * scale));
  const woken = share(100);
  return {
    files: share(1000),
    filesOfEach: share(25),
    weighed: share(10_000),
    largeParts: share(64),
    folderEntries: share(100_000),
    waiting: 20 * woken,
    woken,
  };
}

/** What a work finds out. */
export interface Figure {
  readonly label: string;
  /** `ms` is the duration of one, `B` the size of one; the others are amounts a second. */
  readonly unit: 'files/s' | 'entries/s' | 'MB/s' | 'ms' | 'B';
  /** The least ratio of PostgreSQL to SQLite that is wanted. */
  readonly goal?: number;
}

export interface Work {
  readonly name: string;
  readonly figures: (sizes: Sizes) => readonly Figure[];
  /** Returns what each figure took; `undefined` for one that this kind of service does not have. */
  readonly run: (setup: Setup, sizes: Sizes, round: number) => Promise<readonly (Measured | undefined)[]>;
}

const TEXT = 'x'.repeat(1000);
const inWords = (count: number) => count.toLocaleString('en');

function uploads(name: string, atOnce: number, words: string): Work {
  return {
    name,
    figures: ({ files }) => [{ label: `${inWords(files)} uploads of 1 KB, ${words}`, unit: 'files/s' }],
    async run(setup, { files }, round) {
      const client = setup.client();
      return [
        await setup.measure(files, () =>
          inParallel(files, atOnce, (index) =>
            client.upload('files/upload', { path: `/${name} ${round}/${index}` }, TEXT),
          ),
        ),
      ];
    },
  };
}

const BATCH: Work = {
  name: 'batch',
  figures: ({ files }) => [
    { label: `${inWords(files)} sessions of 1 KB, eight at once`, unit: 'files/s' },
    { label: `one finish_batch_v2 of ${inWords(files)}`, unit: 'files/s', goal: 0.5 },
  ],
  async run(setup, { files }, round) {
    const client = setup.client();
    const batch = new Batch(client);
    const start = (index: number) => batch.add(`/batch ${round}/${index}`, `${round} ${index} ${TEXT}`);
    const sessions = await setup.measure(files, () => inParallel(files, 8, start));
    return [sessions, await setup.measure(files, () => batch.finish())];
  },
};

/** Files that are committed by one call. */
class Batch {
  readonly #entries: object[] = [];

  constructor(private readonly client: Client) {}

  /** Uploads a content of one byte a letter. */
  async add(path: string, text: string): Promise<void> {
    const name = 'files/upload_session/start';
    const { session_id } = await this.client.upload<{ session_id: string }>(name, { close: true }, text);
    this.#entries.push({ cursor: { session_id, offset: text.length }, commit: { path } });
  }

  async finish(): Promise<void> {
    const argument = { entries: this.#entries };
    await this.client.rpc('files/upload_session/finish_batch_v2', argument);
  }
}

/** More than what is stored beside the metadata instead of in a block. */
const WEIGHED_BYTES = 70_000;
/** Weighed files of one batch, and of one folder. */
const BATCH_FILES = 500;
const FOLDER_FILES = 100;

const METADATA: Work = {
  name: 'metadata',
  figures: ({ weighed }) => [
    { label: `metadata of each of ${inWords(weighed)} new files of 70 KB`, unit: 'B' },
    { label: 'the same in the copy of a node', unit: 'B' },
  ],
  async run(setup, { weighed }, round) {
    if (round > 0) return [];
    const before = await setup.metadataBytes();
    const fill = async () => {
      for (let start = 0; start < weighed; start += BATCH_FILES) {
        const batch = new Batch(setup.client());
        await inParallel(Math.min(BATCH_FILES, weighed - start), 4, async (index) => {
          const number = start + index;
          const folder = `/weighed/Documents ${Math.floor(number / FOLDER_FILES)}`;
          await batch.add(`${folder}/a report of quarter ${number}.docx`, `${number} `.padEnd(WEIGHED_BYTES));
        });
        await batch.finish();
      }
    };
    const filled = await setup.measure(weighed, fill);
    const after = await setup.metadataBytes();
    const ofEach = (bytes: number) => ({ ...filled, amount: bytes / weighed });
    const { copied } = after;
    return [
      ofEach(after.stored - before.stored),
      copied === undefined ? undefined : ofEach(copied - (before.copied ?? 0)),
    ];
  },
};

const SEPARATE: Work = {
  name: 'namespaces',
  figures: ({ filesOfEach }) => [
    {
      label: `${NAMESPACES} namespaces at once, ${filesOfEach} uploads of 1 KB in each; PostgreSQL: two services`,
      unit: 'files/s',
      goal: 1,
    },
  ],
  async run(setup, { filesOfEach }) {
    const clients = await setup.accounts(NAMESPACES);
    // A namespace is made at its first use.
    const put = (client: Client, name: number) => client.upload('files/upload', { path: `/${name}` }, TEXT);
    await Promise.all(clients.map((client) => put(client, filesOfEach)));
    const fill = async (client: Client) => {
      for (let name = 0; name < filesOfEach; name++) await put(client, name);
    };
    return [await setup.measure(NAMESPACES * filesOfEach, () => Promise.all(clients.map(fill)))];
  },
};

const LARGE: Work = {
  name: 'large',
  figures: ({ largeParts }) => {
    const size = `${inWords((largeParts * PART_BYTES) / MIB)} MiB`;
    return [
      { label: `${size} up by a concurrent session, four parts at once`, unit: 'MB/s' },
      { label: `${size} down`, unit: 'MB/s' },
    ];
  },
  async run(setup, { largeParts }, round) {
    const client = setup.client();
    const path = `/large ${round}`;
    const bytes = largeParts * PART_BYTES;
    const up = await setup.measure(bytes, () => uploadLarge(client, path, largeParts, round));
    return [up, await setup.measure(bytes, () => client.download(path))];
  },
};

async function uploadLarge(client: Client, path: string, parts: number, round: number): Promise<void> {
  const start = 'files/upload_session/start';
  const argument = { session_type: 'concurrent' };
  const { session_id } = await client.upload<{ session_id: string }>(start, argument, '');
  const piece = Buffer.alloc(PART_BYTES, 'all work and no play makes a dull bench. ');
  await inParallel(parts, PARTS_AT_ONCE, async (index) => {
    const bytes = Buffer.from(piece);
    // Each block differs, because equal ones are stored once.
    for (let at = 0; at < PART_BYTES; at += 4 * MIB) bytes.write(`${round} ${index * PART_BYTES + at}\n`, at);
    const cursor = { session_id, offset: index * PART_BYTES };
    await client.upload('files/upload_session/append_v2', { cursor, close: index === parts - 1 }, bytes);
  });
  const cursor = { session_id, offset: parts * PART_BYTES };
  await client.upload('files/upload_session/finish', { cursor, commit: { path } }, '');
}

const LISTING: Work = {
  name: 'listing',
  figures: ({ folderEntries }) => [
    {
      label: `list_folder of ${inWords(folderEntries)} entries in pages of 2,000`,
      unit: 'entries/s',
      goal: 0.7,
    },
    { label: 'the first call after a start: the copy is loaded', unit: 'entries/s' },
  ],
  async run(setup, { folderEntries }, round) {
    if (round === 0) await fillFolder(setup.client(), folderEntries);
    const warm = await setup.measure(folderEntries, () => listAll(setup.client(), '/listed'));
    await setup.restart();
    const client = setup.client();
    const first = await setup.measure(folderEntries, () =>
      client.rpc('files/get_metadata', { path: '/listed' }),
    );
    return [warm, setup.kind === 'postgres' ? first : undefined];
  },
};

/** Entries of one batch of copies. */
const COPIES = 1000;

async function fillFolder(client: Client, count: number): Promise<void> {
  await client.upload('files/upload', { path: '/one' }, 'one');
  for (let start = 0; start < count; start += COPIES) {
    const entries = Array.from({ length: Math.min(COPIES, count - start) }, (_, index) => {
      return { from_path: '/one', to_path: `/listed/file ${start + index}` };
    });
    const { async_job_id } = await client.rpc<{ async_job_id: string }>('files/copy_batch_v2', { entries });
    for (let state = ''; state !== 'complete'; )
      state = (await client.rpc<{ '.tag': string }>('files/copy_batch/check_v2', { async_job_id }))['.tag'];
  }
}

async function listAll(client: Client, path: string): Promise<void> {
  type Page = { cursor: string; has_more: boolean };
  let page = await client.rpc<Page>('files/list_folder', { path, limit: 2000 });
  while (page.has_more) page = await client.rpc<Page>('files/list_folder/continue', { cursor: page.cursor });
}

const FAN_OUT: Work = {
  name: 'polls',
  figures: ({ waiting, woken }) => [
    {
      label: `a change, ${inWords(waiting)} long polls waiting, ${woken} of them for it: the first answer`,
      unit: 'ms',
    },
    { label: 'the last answer', unit: 'ms' },
  ],
  async run(setup, { waiting, woken }, round) {
    const client = setup.client();
    const cursors: string[] = [];
    for (let folder = 0; folder < waiting / woken; folder++) {
      const path = `/polled ${round}/${folder}`;
      await client.rpc('files/create_folder_v2', { path });
      const name = 'files/list_folder/get_latest_cursor';
      cursors.push((await client.rpc<{ cursor: string }>(name, { path })).cursor);
    }
    const pollers = new Pollers();
    await pollers.open(setup.service.url, cursors, woken);
    await untilIdle(setup.service);
    let firstSeconds = 0;
    const last = await setup.measure(1, async () => {
      const started = performance.now();
      const changed = client.rpc('files/create_folder_v2', { path: `/polled ${round}/3/changed` });
      await pollers.untilAnswers((answers) => (answers[3]?.changed ?? 0) > 0);
      firstSeconds = (performance.now() - started) / 1000;
      await pollers.untilAnswers((answers) => answers[3]?.changed === woken);
      await changed;
    });
    pollers.close();
    return [{ ...last, seconds: firstSeconds }, last];
  },
};

/**
 * Waits until the service has read the requests of all connections. A change before that would wait behind
 * them.
 */
async function untilIdle(service: ServiceProcess): Promise<void> {
  const usedMs = async () => (await service.usage()).cpuMs;
  for (let last = -Infinity, now = await usedMs(); now - last >= IDLE_MS; ) {
    await new Promise((resolve) => setTimeout(resolve, 500));
    last = now;
    now = await usedMs();
  }
}

/** All works, in the order in which they run. The last two need a start of the service, which their files slow down. */
export const WORKS: readonly Work[] = [
  uploads('one', 1, 'one after the other'),
  uploads('eight', 8, 'eight at once'),
  BATCH,
  SEPARATE,
  LARGE,
  FAN_OUT,
  METADATA,
  LISTING,
];
