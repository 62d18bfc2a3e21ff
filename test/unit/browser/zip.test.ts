import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createBrowserHandler } from '../../../src/browser/handler.ts';
import { Announcer } from '../../../src/drive/changes.ts';
import type { FileEntry } from '../../../src/drive/files.ts';
import { type GatewayServer, startGatewayServer } from '../../../src/http/gateway-server.ts';
import { silentLog } from '../../../src/util/log.ts';
import { eventually } from '../../support/eventually.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { MemoryFiles } from '../../support/memory-files.ts';
import { memoryState } from '../../support/memory-state.ts';
import { NO_HISTORY } from '../../support/no-history.ts';
import { path } from '../../support/paths.ts';
import { unhurried } from '../../support/unhurried.ts';

// How the archives of the web application are sent, over files in memory.

const MIB = 1024 * 1024;

let files: MemoryFiles;
let listener: GatewayServer;
/** Bytes that were read from the files. */
let readBytes: number;

beforeEach(async () => {
  const clock = new ManualClock();
  const state = memoryState();
  files = new MemoryFiles({ clock, properties: state.properties });
  readBytes = 0;
  const read = files.read.bind(files);
  files.read = async function* (...how) {
    for await (const piece of read(...how)) {
      readBytes += piece.length;
      yield piece;
    }
  };
  await files.createFolder(path('/Folder'));
  const more = { search: async () => ({ entries: [] }), thumbnail: async () => new Uint8Array() };
  const whole = Object.assign(files, more);
  const handleApi = createBrowserHandler({ clock, log: silentLog });
  const drive = {
    name: 'd',
    rights: '',
    files: whole,
    history: NO_HISTORY,
    state,
    places: [],
    changes: new Announcer(),
  };
  listener = await startGatewayServer({
    host: '127.0.0.1',
    port: 0,
    users: undefined,
    driveOf: () => drive,
    log: silentLog,
    clock,
    ownRoute: handleApi,
    handle: async (exchange) => exchange.drop(),
  });
});
afterEach(() => listener.close(unhurried()));

async function store(name: string, sizeBytes: number): Promise<FileEntry> {
  const body = async function* () {
    yield Buffer.alloc(sizeBytes, 7);
  };
  const { entry } = await files.write(path(`/Folder/${name}`), body(), { mode: { if: 'any' } });
  if (entry.kind !== 'file') throw new Error('not a file');
  return entry;
}

/** Asks for an archive of the folder, and resolves with the head of the answer. */
async function asked(): Promise<IncomingMessage> {
  const form = new URLSearchParams({ folder: '/', names: '["Folder"]' }).toString();
  const outgoing = request(`http://127.0.0.1:${listener.port}/.davgate/api/zip`, {
    method: 'POST',
    headers: {
      'content-type': 'application/x-www-form-urlencoded',
      'content-length': Buffer.byteLength(form),
    },
  });
  outgoing.on('error', () => undefined);
  outgoing.end(form);
  const [answer] = await once(outgoing, 'response');
  return answer;
}

test('an archive is broken off when a file after the first cannot be read', async () => {
  await store('1', 1000);
  await store('2', MIB);
  files.readCutBytes = 128 * 1024;
  const answer = await asked();
  expect(answer.statusCode).toBe(200);
  await expect(buffer(answer)).rejects.toThrow('aborted');
});

test('an archive whose first file cannot be read is refused, and no byte of it is sent', async () => {
  await store('1', MIB);
  files.readCutBytes = 0;
  const answer = await asked();
  expect([answer.statusCode, String(await buffer(answer))]).toEqual([500, 'the stored bytes are damaged\n']);
});

test('an archive is read at the pace of its client, and no more of it when the client has gone', async () => {
  for (const name of ['1', '2', '3', '4']) await store(name, 16 * MIB);
  const answer = await asked();
  answer.on('error', () => undefined);
  answer.pause();
  await eventually(() => expect(files.openReads).toBe(1));
  answer.destroy();
  await eventually(() => expect([files.openReads, files.abandonedReads]).toEqual([0, 1]));
  expect(readBytes).toBeLessThan(64 * MIB);
});

test('small files are read ahead of their turn, and reads end when the archive cannot be finished', async () => {
  await store('1', 1000);
  await store('2', 16 * MIB);
  for (const name of ['3', '4', '5', '6', '7', '8', '9']) await store(name, 1000);
  const answer = await asked();
  answer.on('error', () => undefined);
  answer.pause();
  // The first file, the beginning of the second, and the four after it.
  await eventually(() => expect(readBytes).toBeGreaterThanOrEqual(5000 + 64 * 1024));
  answer.destroy();
  await eventually(() => expect(files.openReads).toBe(0));
  expect(readBytes).toBeLessThan(16 * MIB);
});
