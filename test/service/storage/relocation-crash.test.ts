import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { openStorage } from '../../../src/service/storage/open.ts';
import type { Storage } from '../../../src/service/storage/storage.ts';
import { systemClock } from '../../../src/util/clock.ts';
import { silentLog } from '../../../src/util/log.ts';
import { builtUrl } from '../../support/build.ts';
import { effort, testSeed } from '../../support/effort.ts';
import { randomOf } from './crash-content.mjs';
import { expectSound } from './invariants.ts';
import { HOME, OWNER, put, temporaryFolder } from './opened.ts';

const KILLS = effort(3);
const LOAD = fileURLToPath(new URL('./relocation-load.mjs', import.meta.url));
const FILES = 150;

/** Maximum number of turns of the event loop before the kill: several calls, or a part of one. */
const TURNS_MAX = 200;

test(`${KILLS} kills during large moves and copies leave each whole or not begun`, async () => {
  const seed = testSeed();
  process.stdout.write(`relocation crash test: seed ${seed}\n`);
  const random = randomOf(seed);
  const dataDirectory = await temporaryFolder();
  const first = await open(dataDirectory);
  await first.createNamespace(HOME, 2 ** 40);
  await Promise.all(
    Array.from({ length: FILES }, (_, index) => put(first, `/one/below/${index}`, `${index % 3}`)),
  );
  const ids = (await idsOf(first)).get('one');
  await first.close();
  let place = 'one';
  for (let round = 0; round < KILLS; round++) {
    const done = await killedAtWork(dataDirectory, random(TURNS_MAX));
    const storage = await open(dataDirectory);
    const found = await idsOf(storage);
    const folder = found.has('one') ? 'one' : 'two';
    const moved =
      done
        .filter((path) => path !== '/copy')
        .at(-1)
        ?.slice(1) ?? place;
    // The folder is where the last acknowledged call, or the one after it, put it.
    if (found.has('copy')) expect(found.get('copy')?.length).toBe(FILES + 2);
    expect([...found.keys()].filter((name) => name !== 'copy')).toEqual([folder]);
    expect(found.get(folder)).toEqual(ids);
    if (done.at(-1) !== '/copy') expect(found.has('copy') || folder === moved).toBe(true);
    place = folder;
    if (found.has('copy')) await storage.removeForever(HOME, '/copy');
    await storage.tidy();
    expect((await idsOf(storage)).get(folder)).toEqual(ids);
    await storage.close();
    expectSound(dataDirectory);
  }
});

function open(dataDirectory: string): Promise<Storage> {
  const commitWaitMs = Number.POSITIVE_INFINITY;
  return openStorage({ dataDirectory, clock: systemClock, log: silentLog, commitWaitMs, removedRowsMax: 10 });
}

/** Returns the ids of all entries by their top folder. */
async function idsOf(storage: Storage): Promise<Map<string, string[]>> {
  const ids = new Map<string, string[]>();
  const scope = { path: '', recursive: true, includeDeleted: false };
  for (
    let page = await storage.list(OWNER, scope, 2000);
    ;
    page = await storage.listContinue(OWNER, page.cursor)
  ) {
    for (const entry of page.entries) {
      if (entry.kind === 'deleted') continue;
      const top = entry.pathLower.split('/')[1] ?? '';
      ids.set(top, [...(ids.get(top) ?? []), entry.id].sort());
    }
    if (!page.hasMore) return ids;
  }
}

/** Runs the load and kills it after `turns` turns. Returns the targets of the acknowledged calls. */
async function killedAtWork(dataDirectory: string, turns: number): Promise<string[]> {
  const clockUrl = builtUrl('util/clock.ts');
  const child = spawn(
    process.execPath,
    [LOAD, builtUrl('service/storage/open.ts'), clockUrl, dataDirectory],
    {
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  );
  let errorOutput = '';
  child.stderr.on('data', (chunk: Buffer) => {
    errorOutput += chunk;
  });
  const done: string[] = [];
  let lineCount = 0;
  const closed = once(child, 'close');
  createInterface({ input: child.stdout }).on('line', (text) => {
    const line = JSON.parse(text) as { readonly done?: string };
    if (line.done) done.push(line.done);
    if (lineCount++ === turns) child.kill('SIGKILL');
  });
  const [, signal] = (await closed) as [number | null, string | null];
  expect([signal, errorOutput]).toEqual(['SIGKILL', '']);
  return done;
}
