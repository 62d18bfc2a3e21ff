/**
 * The process that crash.test.ts kills. Works on a storage and writes one JSON line to standard output before
 * each call (`begin`) and after it (`done`). Each worker has its own folder and one call at a time, except for
 * parts of an upload session.
 */
import { writeSync } from 'node:fs';
import { contentOf, randomOf } from './crash-content.mjs';

const [, , moduleUrl, clockUrl, dataDirectory, seed] = process.argv;
const { openStorage } = await import(moduleUrl);
const { systemClock } = await import(clockUrl);
const complain = (event, fields) => {
  writeSync(2, `${event} ${JSON.stringify(fields)}\n`);
};
const log = { info() {}, warn: complain, error: complain };
const startMs = systemClock.now();
const clock = { ...systemClock, now: () => startMs };
// No commit is refused for waiting too long on a busy machine.
const commitWaitMs = Number.POSITIVE_INFINITY;
const storage = await openStorage({ dataDirectory, clock, log, commitWaitMs });
await storage.createNamespace('home', 2 ** 40);
const random = randomOf(Number(seed));
const WORKERS = 6;
const FILES = 8;
let calls = 0;

function say(line) {
  writeSync(1, `${JSON.stringify(line)}\n`);
}

async function* chunksOf(bytes) {
  for (let offset = 0; offset < bytes.length; offset += 65_536) yield bytes.subarray(offset, offset + 65_536);
}

function body(bytes) {
  return { bytes: chunksOf(bytes), bytesMax: 2 ** 40 };
}

function commit(path) {
  return { path, mode: { tag: 'overwrite' }, autorename: false, strictConflict: false };
}

async function call(worker, operation, run) {
  say({ begin: operation, worker });
  const answer = await run().catch((failure) => {
    if (failure.message === 'lookup/not_found') return 'not found';
    throw failure;
  });
  if (answer === 'not found') say({ void: operation, worker });
  else say({ done: operation, worker });
}

/** Returns a random path of a worker, which may be free. */
function path(worker) {
  return `/w${worker}/f${random(FILES)}`;
}

async function session(worker) {
  const label = `${seed}-${calls++}`;
  const bytes = contentOf(label);
  const id = await storage.startSession('home', 'sequential', body(Buffer.alloc(0)), false);
  const step = Math.max(1, Math.ceil(bytes.length / 3));
  for (let offset = 0; offset < bytes.length; offset += step) {
    const part = bytes.subarray(offset, offset + step);
    await storage.appendSession('home', { session: id, offset }, body(part), false);
    say({ session: id, label, sizeBytes: offset + part.length, worker });
  }
  const target = path(worker);
  await call(worker, { put: target, label }, () =>
    storage.finishSession(
      'home',
      { session: id, offset: bytes.length },
      commit(target),
      body(Buffer.alloc(0)),
    ),
  );
  say({ finished: id, worker });
}

async function step(worker) {
  const label = `${seed}-${calls++}`;
  const one = path(worker);
  const other = path(worker);
  const dice = random(20);
  if (dice < 10)
    return await call(worker, { put: one, label }, () =>
      storage.upload('home', commit(one), body(contentOf(label))),
    );
  if (dice < 12) return await call(worker, { remove: one }, () => storage.remove('home', one));
  if (dice < 14) return await call(worker, { remove: one }, () => storage.removeForever('home', one));
  if (dice < 16 && one !== other) {
    const options = { copy: dice === 15, autorename: false };
    return await call(worker, { [options.copy ? 'copy' : 'move']: one, to: other }, () =>
      storage.relocate('home', one, other, options).catch((failure) => {
        // A taken target and a missing source change nothing.
        throw failure.message === 'conflict/file' ? new Error('lookup/not_found') : failure;
      }),
    );
  }
  await session(worker);
}

async function work(worker) {
  for (;;) await step(worker);
}

/** Runs housekeeping without a pause, so that some kills interrupt it. */
async function collect() {
  for (;;) {
    await storage.tidy();
    await new Promise((resolve) => setImmediate(resolve));
  }
}

say({ ready: true });
void collect();
await Promise.all(Array.from({ length: WORKERS }, (_, worker) => work(worker)));
