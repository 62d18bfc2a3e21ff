/**
 * The victim of relocation-crash.test.ts: moves and copies a large folder until it is killed. Says on standard output
 * what was acknowledged (`done`), and each turn of its event loop while a call is under way.
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

/** Where the folder is now. */
function placeOf() {
  try {
    storage.stat('home', '/one', false);
    return ['/one', '/two'];
  } catch {
    return ['/two', '/one'];
  }
}

for (;;) {
  const [from, to] = placeOf();
  await call(from, to, false);
  await call(to, '/copy', true);
  await storage.removeForever('home', '/copy');
}
