import { randomInt } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createRemote } from '../../src/api/client.ts';
import type { Entry, FileEntry, Remote } from '../../src/api/remote.ts';
import { readAll } from '../../src/util/byte-source.ts';
import { systemClock } from '../../src/util/clock.ts';
import { silentLog } from '../../src/util/log.ts';
import { ROOT } from '../../src/util/path.ts';
import { pseudoRandomBytes } from '../support/bytes.ts';
import { effort } from '../support/effort.ts';
import { expectSoon } from '../support/eventually.ts';
import { type Program, startProgram, temporaryDirectory } from '../support/program.ts';
import { startTestService, type TestService } from '../support/service.ts';

/** Number of kills, each while clients send requests. */
const KILLS = effort(2);
const CLIENTS = 6;
/** Number of files of a client: few, so that versions of a file wait behind earlier ones. */
const FILES_EACH = 8;

let service: TestService;
let remote: Remote & { close(): Promise<void> };
let program: Program;
let data: Awaited<ReturnType<typeof temporaryDirectory>>;
let port = 0;
/** Resolves when davgate runs again; clients wait for it. */
let isUp: Promise<void>;

beforeAll(async () => {
  data = await temporaryDirectory();
  service = await startTestService();
  const { url, token } = service;
  const urls = { apiUrl: url, contentUrl: url, notifyUrl: url };
  remote = createRemote({ ...urls, credentials: { token }, root: '', clock: systemClock, log: silentLog });
  // Slow, so that many writes are pending when davgate is killed.
  service.service.setFaults({ 'latency-write-ms': 20, 'lost-answer-share': 0.05, seed: 1 });
  isUp = start();
  await isUp;
  port = Number(new URL(program.url).port);
});

afterAll(async () => {
  await program?.stop();
  await remote?.close();
  await service?.close();
  await data.remove();
});

async function start(): Promise<void> {
  program = await startProgram({
    dataDirectory: data.path,
    port,
    args: ['--write-mode', 'back', '--api-url', service.url, '--token', service.token],
  });
}

async function ask(method: string, path: string, body?: Uint8Array): Promise<number> {
  const answer = await fetch(`${program.url}${path}`, {
    method,
    headers: { authorization: program.authorization },
    ...(body && { body: new Uint8Array(body) }),
  });
  await answer.arrayBuffer();
  return answer.status;
}

async function health(): Promise<{ journalFiles: number; journalBytes: number; lostFiles: number }> {
  return (await (await fetch(`${program.url}.davgate/healthz`)).json()) as Awaited<ReturnType<typeof health>>;
}

/** Returns all files at the service, by path. */
async function stored(): Promise<ReadonlyMap<string, FileEntry>> {
  const entries = new Map<string, Entry>();
  for await (const { changes } of remote.list(ROOT, { recursive: true }))
    for (const change of changes) if (change.kind === 'put') entries.set(change.entry.path, change.entry);
  return new Map([...entries].flatMap(([path, entry]) => (entry.kind === 'file' ? [[path, entry]] : [])));
}

async function bytesOf(file: FileEntry): Promise<Buffer> {
  return readAll(await remote.download(file, undefined), file.sizeBytes);
}

/** Versions of a file that may be at the service. */
interface Versions {
  /** The last version that was acknowledged; 0 for none. */
  acknowledged: number;
  /** Versions sent after that one and not acknowledged. */
  unacknowledged: number[];
}

/** Returns a body: empty, small enough for the journal's database, or larger, for a file of its own. */
function contentOf(client: number, file: number, version: number): Buffer {
  const sizes = [0, 100, 10_000, 70_000, 300_000];
  const size = sizes[(client + file * 3 + version) % sizes.length] ?? 0;
  return pseudoRandomBytes(size + (version % 7), client * 1_000_000 + file * 10_000 + version);
}

describe(`a gateway with write-back that is killed ${KILLS} times`, () => {
  test('every write that a gateway with write-back acknowledged before a kill reaches the service whole, and nothing else does', async () => {
    expect(await ask('MKCOL', 'busy')).toBe(201);
    const known = new Map<string, Versions>();
    let isOver = false;
    let version = 0;
    let waitedAtKill = 0;
    const write = async (client: number) => {
      for (let turn = 0; !isOver; turn++) {
        await isUp;
        const file = turn % FILES_EACH;
        const path = `busy/${client}-${file}`;
        const versions = known.get(path) ?? { acknowledged: 0, unacknowledged: [] };
        known.set(path, versions);
        const number = ++version;
        versions.unacknowledged.push(number);
        const status = await ask('PUT', path, contentOf(client, file, number)).catch(() => 0);
        if (status === 201 || status === 204) known.set(path, { acknowledged: number, unacknowledged: [] });
        else expect([0, 503], path).toContain(status);
      }
    };
    const clients = Array.from({ length: CLIENTS }, (_, client) => write(client));
    for (let kill = 0; kill < KILLS; kill++) {
      const until = version + randomInt(20, 120);
      while (version < until) await new Promise((resolve) => setImmediate(resolve));
      waitedAtKill += (await health()).journalFiles;
      isUp = program.kill().then(start);
      await isUp;
    }
    isOver = true;
    await Promise.all(clients);
    expect(waitedAtKill).toBeGreaterThan(KILLS);
    service.service.setFaults({});
    await expectSoon(async () => (await health()).journalFiles).toBe(0);
    expect(await health()).toMatchObject({ journalFiles: 0, journalBytes: 0, lostFiles: 0 });
    const files = await stored();
    for (const [path, { acknowledged, unacknowledged }] of known) {
      const [client = 0, file = 0] = path.slice('busy/'.length).split('-').map(Number);
      const found = files.get(`/${path}`);
      const versions = [acknowledged, ...unacknowledged].filter((number) => number > 0);
      if (!found) expect(acknowledged, path).toBe(0);
      else {
        const bytes = await bytesOf(found);
        const isOne = versions.some((number) => contentOf(client, file, number).equals(bytes));
        expect(isOne, `${path} is none of its versions ${versions.join(', ')}`).toBe(true);
      }
    }
    // No other client writes, so there is no conflicted copy, and no temporary name may be left.
    const unexpected = [...files.keys()].filter((path) => !known.has(path.slice(1)));
    expect(unexpected).toEqual([]);
  });

  test('SIGTERM to a gateway with write-back sends all pending writes before it ends with exit code 0', async () => {
    service.service.setFaults({ 'latency-write-ms': 100 });
    await Promise.all(
      Array.from({ length: 30 }, (_, index) => ask('PUT', `busy/last ${index}`, Buffer.from('x'))),
    );
    expect(await program.stop()).toBe(0);
    const files = await stored();
    expect([...files.keys()].filter((path) => path.startsWith('/busy/last'))).toHaveLength(30);
    await start();
  });
});
