/** `npm run bench:service`: the storage service alone, compared with its disk and its database. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Pollers } from '../support/pollers.ts';
import { ServiceProcess } from '../support/service-process.ts';

const MIB = 1024 * 1024;
const LARGE_BYTES = 1024 * MIB;
const PART_BYTES = 16 * MIB;
const PARALLEL = 4;
const SMALL_FILES = 1000;
const FOLDER_ENTRIES = 100_000;
const WAITING = 2000;
const WOKEN = 100;
/** Highest processor time of an idle service in half a second, in ms. */
const IDLE_MS = 25;

interface Row {
  readonly work: string;
  readonly figure: string;
  readonly beside: string;
}

/** Returns the duration of `work`, in seconds. */
async function secondsOf(work: () => Promise<unknown> | unknown): Promise<number> {
  const start = process.hrtime.bigint();
  await work();
  return Number(process.hrtime.bigint() - start) / 1e9;
}

class Client {
  constructor(private readonly service: ServiceProcess) {}

  async rpc<T>(name: string, argument: unknown): Promise<T> {
    const body = JSON.stringify(argument);
    return (await (await this.#send(name, { 'content-type': 'application/json' }, body)).json()) as T;
  }

  async upload<T>(name: string, argument: unknown, body: Uint8Array | string): Promise<T> {
    const headers = {
      'content-type': 'application/octet-stream',
      'dropbox-api-arg': JSON.stringify(argument),
    };
    return (await (await this.#send(name, headers, body)).json()) as T;
  }

  async download(path: string): Promise<number> {
    const answer = await this.#send('files/download', { 'dropbox-api-arg': JSON.stringify({ path }) }, null);
    let bytes = 0;
    for await (const chunk of answer.body ?? []) bytes += (chunk as Uint8Array).length;
    return bytes;
  }

  async #send(
    name: string,
    headers: Record<string, string>,
    body: Uint8Array | string | null,
  ): Promise<Response> {
    const { url, token } = this.service;
    const answer = await fetch(`${url}/2/${name}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, ...headers },
      body,
    });
    if (!answer.ok) throw new Error(`${name}: ${answer.status} ${await answer.text()}`);
    return answer;
  }
}

/** Runs `work` for the numbers below `count`, at most `atOnce` at a time. */
async function inParallel(count: number, atOnce: number, work: (index: number) => Promise<unknown>) {
  let next = 0;
  const run = async () => {
    for (let index = next++; index < count; index = next++) await work(index);
  };
  await Promise.all(Array.from({ length: atOnce }, run));
}

/** Returns the rate of `dd` with fsync, in MB/s. */
async function diskSpeed(home: string): Promise<number> {
  const file = join(home, 'dd.bin');
  const blocks = LARGE_BYTES / (4 * MIB);
  const args = ['if=/dev/zero', `of=${file}`, 'bs=4M', `count=${blocks}`, 'conv=fsync'];
  const seconds = await secondsOf(() => execFileSync('dd', args, { stdio: 'ignore' }));
  rmSync(file);
  return LARGE_BYTES / seconds / 1e6;
}

/** The methods of SQLite that the benchmark uses. */
interface PlainDatabase {
  pragma(text: string): unknown;
  exec(sql: string): unknown;
  prepare(sql: string): { run(...values: unknown[]): unknown };
  transaction(work: () => void): () => void;
  close(): unknown;
}

/**
 * Returns the rate of plain SQLite with the service's settings, in rows a second: one transaction for each
 * row, and one for all.
 */
async function sqliteSpeed(home: string): Promise<{ single: number; together: number }> {
  const { Sqlite } = (await import(new URL('../src/util/sqlite/sqlite.js', import.meta.url).href)) as {
    Sqlite: new (file: string) => PlainDatabase;
  };
  const database = new Sqlite(join(home, 'plain.sqlite'));
  database.pragma('journal_mode = WAL');
  database.pragma('synchronous = FULL');
  database.exec('CREATE TABLE file (path TEXT PRIMARY KEY, bytes BLOB)');
  const insert = database.prepare('INSERT INTO file VALUES (?, ?)');
  const all = (prefix: string) => {
    for (let index = 0; index < SMALL_FILES; index++) insert.run(`${prefix}${index}`, Buffer.alloc(1000));
  };
  const single = SMALL_FILES / (await secondsOf(() => all('single')));
  const together = SMALL_FILES / (await secondsOf(database.transaction(() => all('together'))));
  database.close();
  return { single, together };
}

async function smallFiles(client: Client, home: string): Promise<Row[]> {
  const { single, together } = await sqliteSpeed(home);
  const text = 'x'.repeat(1000);
  const put = (folder: string, atOnce: number) =>
    secondsOf(() =>
      inParallel(SMALL_FILES, atOnce, (index) =>
        client.upload('files/upload', { path: `/${folder}/${index}` }, text),
      ),
    );
  const rate = (seconds: number) => SMALL_FILES / seconds;
  const alone = rate(await put('alone', 1));
  const eight = rate(await put('eight', 8));
  const entries: object[] = [];
  const batch = await secondsOf(async () => {
    await inParallel(SMALL_FILES, 8, async (index) => {
      const name = 'files/upload_session/start';
      const { session_id } = await client.upload<{ session_id: string }>(
        name,
        { close: true },
        `${index}${text}`,
      );
      const offset = `${index}${text}`.length;
      entries.push({ cursor: { session_id, offset }, commit: { path: `/batch/${index}` } });
    });
  });
  const finish = await secondsOf(() => client.rpc('files/upload_session/finish_batch_v2', { entries }));
  const beside = (figure: number, plain: number, of: string) =>
    `${(figure / plain).toFixed(2)} of ${Math.round(plain)} plain inserts/s, ${of}`;
  const row = (work: string, figure: number, plain: number, of: string): Row => {
    return { work, figure: `${Math.round(figure)} files/s`, beside: beside(figure, plain, of) };
  };
  return [
    row('1,000 uploads of 1 KB, one after the other', alone, single, 'one transaction each'),
    row('1,000 uploads of 1 KB, eight at once', eight, single, 'one transaction each'),
    row(
      '1,000 sessions, eight at once, and one finish_batch_v2',
      rate(batch + finish),
      single,
      'one transaction each',
    ),
    row('of these, the finish_batch_v2 alone', rate(finish), together, 'all in one transaction'),
  ];
}

async function listing(client: Client): Promise<Row[]> {
  await client.upload('files/upload', { path: '/one' }, 'one');
  for (let start = 0; start < FOLDER_ENTRIES; start += SMALL_FILES) {
    const entries = Array.from({ length: SMALL_FILES }, (_, index) => {
      return { from_path: '/one', to_path: `/large/file ${start + index}` };
    });
    const { async_job_id } = await client.rpc<{ async_job_id: string }>('files/copy_batch_v2', { entries });
    for (let state = ''; state !== 'complete'; )
      state = (await client.rpc<{ '.tag': string }>('files/copy_batch/check_v2', { async_job_id }))['.tag'];
  }
  type Page = { entries: object[]; cursor: string; has_more: boolean };
  const pages: number[] = [];
  let page: Page | undefined;
  while (!page || page.has_more) {
    const before: Page | undefined = page;
    const seconds = await secondsOf(async () => {
      page = before
        ? await client.rpc<Page>('files/list_folder/continue', { cursor: before.cursor })
        : await client.rpc<Page>('files/list_folder', { path: '/large', limit: 2000 });
    });
    pages.push(seconds);
  }
  const sorted = [...pages].sort((one, other) => one - other);
  const total = pages.reduce((sum, one) => sum + one, 0);
  const ms = (seconds: number) => `${(seconds * 1000).toFixed(0)} ms`;
  return [
    {
      work: `list_folder, ${FOLDER_ENTRIES.toLocaleString('en')} entries in pages of 2,000`,
      figure: `${Math.round(FOLDER_ENTRIES / total)} entries/s`,
      beside: `a page ${ms(sorted[sorted.length >> 1] ?? 0)}, the first ${ms(pages[0] ?? 0)}, the last ${ms(pages.at(-1) ?? 0)}`,
    },
  ];
}

async function largeFile(client: Client, home: string): Promise<Row[]> {
  const disk = await diskSpeed(home);
  const parts = LARGE_BYTES / PART_BYTES;
  // Each part differs, because equal blocks are stored once.
  const piece = Buffer.alloc(PART_BYTES, 'all work and no play makes a dull bench. ');
  const upload = await secondsOf(async () => {
    const start = 'files/upload_session/start';
    const { session_id } = await client.upload<{ session_id: string }>(
      start,
      { session_type: 'concurrent' },
      '',
    );
    await inParallel(parts, PARALLEL, async (index) => {
      const bytes = Buffer.from(piece);
      for (let block = 0; block < PART_BYTES; block += 4 * MIB)
        bytes.writeUInt32LE(index * 4 + block / MIB, block);
      const cursor = { session_id, offset: index * PART_BYTES };
      await client.upload('files/upload_session/append_v2', { cursor, close: index === parts - 1 }, bytes);
    });
    const cursor = { session_id, offset: LARGE_BYTES };
    await client.upload('files/upload_session/finish', { cursor, commit: { path: '/1 GiB' } }, '');
  });
  const download = await secondsOf(() => client.download('/1 GiB'));
  const row = (work: string, seconds: number): Row => {
    const speed = LARGE_BYTES / seconds / 1e6;
    const beside = `${(speed / disk).toFixed(2)} of ${Math.round(disk)} MB/s, dd with fsync`;
    return { work, figure: `${Math.round(speed)} MB/s`, beside };
  };
  return [row('1 GiB up by a concurrent session, four parts at once', upload), row('1 GiB down', download)];
}

async function fanOut(client: Client, service: ServiceProcess): Promise<Row[]> {
  const cursors: string[] = [];
  for (let folder = 0; folder < WAITING / WOKEN; folder++) {
    await client.rpc('files/create_folder_v2', { path: `/polled/${folder}` });
    const name = 'files/list_folder/get_latest_cursor';
    cursors.push((await client.rpc<{ cursor: string }>(name, { path: `/polled/${folder}` })).cursor);
  }
  const pollers = new Pollers();
  await pollers.open(service.url, cursors, WOKEN);
  await untilIdle(service);
  const changed = client.rpc('files/create_folder_v2', { path: '/polled/3/changed' });
  const first = await secondsOf(() => pollers.untilAnswers((answers) => (answers[3]?.changed ?? 0) > 0));
  const rest = await secondsOf(() => pollers.untilAnswers((answers) => answers[3]?.changed === WOKEN));
  await changed;
  pollers.close();
  return [
    {
      work: `a change, ${WAITING.toLocaleString('en')} long polls waiting, ${WOKEN} of them for it`,
      figure: `${(first * 1000).toFixed(0)} ms to the first answer`,
      beside: `${((first + rest) * 1000).toFixed(0)} ms to the last, from before the change was asked for`,
    },
  ];
}

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

async function main(): Promise<void> {
  const home = mkdtempSync(join(tmpdir(), 'davgate-bench-service-'));
  const server = new URL('../src/service/server.js', import.meta.url);
  const service = new ServiceProcess(server.href, join(home, 'data'));
  try {
    await service.start();
    const client = new Client(service);
    const rows = [
      ...(await smallFiles(client, home)),
      ...(await largeFile(client, home)),
      ...(await fanOut(client, service)),
      ...(await listing(client)),
    ];
    console.log('| work | figure | beside it |\n| --- | --- | --- |');
    for (const { work, figure, beside } of rows) console.log(`| ${work} | ${figure} | ${beside} |`);
  } finally {
    await service.end('SIGTERM');
    rmSync(home, { recursive: true, force: true });
  }
}

await main();
process.exit(0);
