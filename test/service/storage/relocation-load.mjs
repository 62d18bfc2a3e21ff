/**
 * The process that relocation-crash.test.ts kills. Moves and copies a large folder, and writes to standard
 * output each acknowledged call (`done`) and each turn of the event loop during a call.
 */
import { writeSync } from 'node:fs';

const [, , moduleUrl, clockUrl, dataDirectory] = process.argv;
const { openStorage } = await import(moduleUrl);
const { systemClock } = await import(clockUrl);
const complain = (event, fields) => {
  writeSync(2, `${event} ${JSON.stringify(fields)}\n`);
};
const storage = await openStorage({
  dataDirectory,
  clock: systemClock,
  log: { info() {}, warn: complain, error: complain },
  // No commit is refused for waiting too long on a busy machine.
  commitWaitMs: Number.POSITIVE_INFINITY,
  stagedRowsMax: 10,
  removedRowsMax: 10,
});

function say(line) {
  writeSync(1, `${JSON.stringify(line)}\n`);
}

async function call(from, to, copy) {
  let isRunning = true;
  const done = storage.relocate('home', from, to, { copy, autorename: false }).finally(() => {
    isRunning = false;
  });
  while (isRunning) {
    say({ turn: true });
    await new Promise((resolve) => setImmediate(resolve));
  }
  await done;
  say({ done: to });
}

/** Returns the current path of the folder, and the free one. */
async function placeOf() {
  try {
    await storage.stat('home', '/one', false);
    return ['/one', '/two'];
  } catch {
    return ['/two', '/one'];
  }
}

for (;;) {
  const [from, to] = await placeOf();
  await call(from, to, false);
  await call(to, '/copy', true);
  await storage.removeForever('home', '/copy');
}
