import { setImmediate as turn } from 'node:timers/promises';
import type { Storage, StoredPage } from '../../../src/service/storage/storage.ts';
import { HOME, OWNER, opened, put } from './opened.ts';

export const FILES = 60;

/** Number of entries of the large folder: itself, its subfolder and the files. */
export const ENTRIES = FILES + 2;

/** Maximum number of rows that one transaction makes. */
export const STEP_ROWS = 7;

export const MOVE = { copy: false, autorename: false };
export const COPY = { copy: true, autorename: false };
export const ALL = { path: '', recursive: true, includeDeleted: false };
export const DELETED_TOO = { ...ALL, includeDeleted: true };
export const STEPS = { stagedRowsMax: STEP_ROWS, removedRowsMax: STEP_ROWS };

/** Opens a storage with a folder whose move takes many transactions. */
export async function withLargeFolder(
  options: Parameters<typeof opened>[0] = {},
  limitBytes?: number,
): Promise<Storage & { readonly dataDirectory: string }> {
  const storage = await opened({ ...STEPS, ...options }, limitBytes);
  await storage.createFolder(HOME, '/Large/Below', false);
  await Promise.all(
    Array.from({ length: FILES }, (_, index) => put(storage, `/Large/Below/${index}`, 'text')),
  );
  await storage.createFolder(HOME, '/other', false);
  return storage;
}

/** Returns the entries of every page of a listing. */
export async function pagesOf(storage: Storage, scope = ALL): Promise<StoredPage['entries']> {
  const entries: StoredPage['entries'][number][] = [];
  for (
    let page = await storage.list(OWNER, scope, 2000);
    ;
    page = await storage.listContinue(OWNER, page.cursor)
  ) {
    entries.push(...page.entries);
    if (!page.hasMore) return entries;
  }
}

/** Returns the number of live entries at a path and below it. */
export async function count(storage: Storage, path: string): Promise<number> {
  return (await pagesOf(storage)).filter(
    ({ kind, pathLower }) => kind !== 'deleted' && `${pathLower}/`.startsWith(`${path}/`),
  ).length;
}

/** Returns the kind and display path of each listed entry, sorted. */
export async function shown(storage: Storage, scope = DELETED_TOO): Promise<string[]> {
  return (await pagesOf(storage, scope)).map((entry) => `${entry.kind} ${entry.pathDisplay}`).sort();
}

export async function found(storage: Storage, text: string): Promise<number> {
  const named = storage.findNames(
    HOME,
    { path: '', deleted: false },
    { by: 'name', text, exact: true },
    { parts: [], matches: () => true },
  );
  let items = 0;
  for await (const piece of named) items += piece.length;
  return items;
}

/** Calls `look` at each turn of the event loop while a call runs. Returns the number of turns. */
export async function during<T>(
  call: Promise<T>,
  look: () => unknown,
): Promise<{ result: T; turns: number }> {
  let isRunning = true;
  let turns = 0;
  const ended = call.finally(() => {
    isRunning = false;
  });
  ended.catch(() => undefined);
  for (; isRunning; turns++) {
    await look();
    await turn();
  }
  return { result: await ended, turns };
}

/** Waits until a large move or copy has made some of its rows. */
export async function underWay(): Promise<void> {
  for (let turns = 0; turns < 8; turns++) await turn();
}
