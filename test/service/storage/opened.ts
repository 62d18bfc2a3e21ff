import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { openStorage, type StorageOptions } from '../../../src/service/storage/open.ts';
import type { Commit, Incoming, Storage, StoredFile } from '../../../src/service/storage/storage.ts';
import { silentLog } from '../../../src/util/log.ts';
import { ManualClock } from '../../support/manual-clock.ts';

export const HOME = 'home';

export const OWNER = { namespace: HOME, account: 'dbid:one', app: 'app' };

/** Makes a folder that is removed after the test. */
export async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'davgate-storage-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/**
 * Opens a storage with one empty home of `limitBytes`, closed after the test. The default clock does not
 * advance, because on a busy machine many parallel calls would wait too long for their commits.
 */
export async function opened(
  options: Partial<StorageOptions> = {},
  limitBytes = 2 ** 40,
): Promise<Storage & { readonly dataDirectory: string }> {
  const dataDirectory = options.dataDirectory ?? (await temporaryFolder());
  const storage = await openStorage({ clock: new ManualClock(), log: silentLog, ...options, dataDirectory });
  onTestFinished(() => storage.close());
  await storage.createNamespace(HOME, limitBytes);
  return Object.assign(storage, { dataDirectory });
}

/** Returns a body of these pieces. */
export function body(...pieces: (string | Uint8Array)[]): Incoming {
  return { bytes: streamOf(pieces), bytesMax: 2 ** 40 };
}

async function* streamOf(pieces: Iterable<string | Uint8Array>): AsyncGenerator<Uint8Array> {
  for (const piece of pieces) yield Buffer.from(piece);
}

export function commit(path: string, overrides: Partial<Commit> = {}): Commit {
  return { path, mode: { tag: 'add' }, autorename: false, strictConflict: false, ...overrides };
}

/** Uploads a file with mode overwrite. */
export function put(storage: Storage, path: string, ...pieces: (string | Uint8Array)[]): Promise<StoredFile> {
  return storage.upload(HOME, commit(path, { mode: { tag: 'overwrite' } }), body(...pieces));
}

export async function bytesOf(stream: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/** Returns the text of the file at `path`. */
export async function textAt(storage: Storage, path: string): Promise<string> {
  const found = await storage.stat(HOME, path, false);
  if (found.kind !== 'file') throw new Error(`${path} is a ${found.kind}`);
  return (await bytesOf(storage.read(HOME, found, undefined))).toString();
}

/** Returns the refusal of a call as `kind/tag`, or `done`. */
export async function refusal(call: Promise<unknown> | (() => unknown)): Promise<string> {
  try {
    await (typeof call === 'function' ? call() : call);
    return 'done';
  } catch (failure) {
    return failure instanceof Error ? failure.message : String(failure);
  }
}
