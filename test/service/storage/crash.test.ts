import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { openStorage } from '../../../src/service/storage/open.ts';
import { type Storage, StorageError } from '../../../src/service/storage/storage.ts';
import { systemClock } from '../../../src/util/clock.ts';
import { silentLog } from '../../../src/util/log.ts';
import { builtUrl } from '../../support/build.ts';
import { effort, testSeed } from '../../support/effort.ts';
import { contentOf, randomOf } from './crash-content.mjs';
import { expectSound } from './invariants.ts';
import { body, bytesOf, commit, HOME, OWNER, temporaryFolder } from './opened.ts';

const KILLS = effort(4);
const LOAD = fileURLToPath(new URL('./crash-load.mjs', import.meta.url));

/** Maximum number of output lines before the kill, enough for about a hundred calls. */
const LINES_MAX = 400;

interface Operation {
  readonly put?: string;
  readonly label?: string;
  readonly remove?: string;
  readonly move?: string;
  readonly copy?: string;
  readonly to?: string;
}

/** A line of the killed process. */
interface Line {
  readonly begin?: Operation;
  readonly done?: Operation;
  readonly void?: Operation;
  readonly session?: string;
  readonly finished?: string;
  readonly label?: string;
  readonly sizeBytes?: number;
  readonly worker?: number;
}

/** Labels of one worker's file contents, by path. */
type Files = ReadonlyMap<string, string>;

test(`${KILLS} kills at random moments lose no acknowledged write and leave none half done`, async () => {
  const seed = testSeed();
  process.stdout.write(`crash test: seed ${seed}\n`);
  const random = randomOf(seed);
  const dataDirectory = await temporaryFolder();
  const files = new Map<number, Files>();
  let acknowledged = 0;
  for (let round = 0; round < KILLS; round++) {
    const lines = await killedAtWork(dataDirectory, `${seed + round}`, random(LINES_MAX));
    acknowledged += lines.filter((line) => line.done).length;
    const storage = await openStorage({
      dataDirectory,
      clock: systemClock,
      log: silentLog,
      commitWaitMs: Number.POSITIVE_INFINITY,
    });
    await storage.createNamespace(HOME, 2 ** 40);
    await expectSessions(storage, lines);
    const found = await filesOf(storage);
    for (let worker = 0; worker < 6; worker++) {
      const allowed = allowedAfter(
        files.get(worker) ?? new Map(),
        lines.filter((line) => line.worker === worker),
      );
      const actual = found.get(worker) ?? new Map();
      expect(allowed.map(sorted), `worker ${worker} in round ${round}`).toContainEqual(sorted(actual));
      files.set(worker, actual);
    }
    await storage.tidy();
    await storage.close();
    expectSound(dataDirectory);
  }
  expect(acknowledged).toBeGreaterThan(KILLS * 5);
});

/** Runs the load and kills it after `linesMin` lines. Returns all its lines. */
async function killedAtWork(dataDirectory: string, seed: string, linesMin: number): Promise<Line[]> {
  const clockUrl = builtUrl('util/clock.ts');
  const child = spawn(
    process.execPath,
    [LOAD, builtUrl('service/storage/open.ts'), clockUrl, dataDirectory, seed],
    {
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  );
  let errorOutput = '';
  child.stderr.on('data', (chunk: Buffer) => {
    errorOutput += chunk;
  });
  const lines: Line[] = [];
  const closed = once(child, 'close');
  createInterface({ input: child.stdout }).on('line', (text) => {
    lines.push(JSON.parse(text) as Line);
    if (lines.length === 1 + linesMin) child.kill('SIGKILL');
  });
  const [, signal] = (await closed) as [number | null, string | null];
  expect([signal, errorOutput]).toEqual(['SIGKILL', '']);
  return lines;
}

/**
 * Returns the allowed states of a worker's files: all acknowledged calls, with or without the interrupted one.
 */
function allowedAfter(before: Files, lines: readonly Line[]): Files[] {
  let files = before;
  let underWay: Operation | undefined;
  for (const line of lines) {
    if (line.begin) underWay = line.begin;
    if (line.done) files = applied(files, line.done);
    if (line.done || line.void) underWay = undefined;
  }
  return underWay ? [files, applied(files, underWay)] : [files];
}

function applied(files: Files, { put, label, remove, move, copy, to }: Operation): Files {
  const after = new Map(files);
  if (put && label) after.set(put, label);
  if (remove) after.delete(remove);
  const source = files.get(move ?? copy ?? '');
  if (to && source && !files.has(to)) after.set(to, source);
  if (move && to && source && !files.has(to)) after.delete(move);
  return after;
}

/** Reads every file. Returns their labels by worker and path. */
async function filesOf(storage: Storage): Promise<Map<number, Map<string, string>>> {
  const workers = new Map<number, Map<string, string>>();
  for (const entry of (await storage.list(OWNER, { path: '', recursive: true, includeDeleted: false }, 2000))
    .entries) {
    if (entry.kind !== 'file') continue;
    const bytes = await bytesOf(storage.read(HOME, entry, undefined));
    const worker = Number(/^\/w(\d)/.exec(entry.pathDisplay)?.[1]);
    const ofWorker = workers.get(worker) ?? new Map<string, string>();
    workers.set(worker, ofWorker.set(entry.pathDisplay, labelOf(bytes)));
  }
  return workers;
}

/** Returns the label of a content, which must be complete. */
function labelOf(bytes: Buffer): string {
  const text = bytes.toString('latin1', 0, 40);
  const label = /^(\d+-\d+) /.exec(text)?.[1];
  // A content of ten bytes is too short for its label.
  if (!label) return `short ${text}`;
  expect(bytes.equals(contentOf(label)), `the content ${label} is whole`).toBe(true);
  return label;
}

/** Returns files as sorted text, with contents in place of labels where they are too short for one. */
function sorted(files: Files): string[] {
  return [...files].map(([path, label]) => `${path} ${shown(label)}`).sort();
}

function shown(label: string): string {
  if (label.startsWith('short ')) return label;
  const content = contentOf(label);
  return content.length < 40 ? `short ${content.toString('latin1')}` : label;
}

/** Expects unfinished sessions to have every acknowledged byte, and finishes them. */
async function expectSessions(storage: Storage, lines: readonly Line[]): Promise<void> {
  const open = new Map<string, Line>();
  for (const line of lines) {
    if (line.session) open.set(line.session, line);
    if (line.finished) open.delete(line.finished);
  }
  for (const [session, { label = '', sizeBytes = 0 }] of open) {
    const finish = (offset: number) =>
      storage.finishSession(HOME, { session, offset }, commit('/session'), body());
    const file = await finish(sizeBytes).catch((failure: unknown) => {
      if (!(failure instanceof StorageError) || failure.refusal.kind !== 'session') throw failure;
      const { correctOffset = 0 } = failure.refusal;
      if (failure.refusal.tag === 'incorrect_offset' && correctOffset > sizeBytes)
        return finish(correctOffset);
      // The kill came between the last commit and its answer.
      if (failure.refusal.tag === 'not_found' && sizeBytes === contentOf(label).length) return undefined;
      throw failure;
    });
    if (!file) continue;
    const bytes = await bytesOf(storage.read(HOME, file, undefined));
    expect(bytes.length, `session of ${label}`).toBeGreaterThanOrEqual(sizeBytes);
    expect(bytes.equals(contentOf(label).subarray(0, bytes.length)), `session of ${label}`).toBe(true);
    await storage.removeForever(HOME, '/session');
  }
}
