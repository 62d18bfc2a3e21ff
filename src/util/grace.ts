import { onAbort } from './abort.ts';
import type { Clock } from './clock.ts';
import type { Log } from './log.ts';

/**
 * Time limits of an orderly stop, in ms: `work` for running work, `all` including the closing of files after it.
 * `docker stop` kills after 10 s.
 */
const END_MS = { work: 8_000, all: 9_500 };

/**
 * Runs `close`, an orderly stop. Aborts its signal when the time for running work is over. Resolves when everything is
 * closed, and at the latest after `END_MS.all`: acknowledged writes survive a kill as well.
 */
export async function withinGrace(
  { clock, log }: { readonly clock: Clock; readonly log: Log },
  close: (over: AbortSignal) => Promise<void>,
): Promise<void> {
  const over = new AbortController();
  const ended = new AbortController();
  const giveUp = async () => {
    await clock.sleep(END_MS.work, ended.signal);
    over.abort(new Error('the grace time is over'));
    await clock.sleep(END_MS.all - END_MS.work, ended.signal);
    log.error('davgate stops before everything is closed; acknowledged writes are safe');
  };
  try {
    await Promise.race([close(over.signal), giveUp()]);
  } finally {
    ended.abort();
  }
}

/** Waits for `work` until `over` is aborted. Returns whether `work` has ended; rejects as `work` does. */
export async function endsBefore(over: AbortSignal, work: Promise<unknown>): Promise<boolean> {
  let removeListener = (): void => {};
  const isOver = new Promise<false>((resolve) => {
    removeListener = onAbort(over, () => resolve(false));
  });
  try {
    return await Promise.race([work.then(() => true), isOver]);
  } finally {
    removeListener();
  }
}
