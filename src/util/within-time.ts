import { createContext, Script } from 'node:vm';

/** Only the timer of a script of its own can end work that never waits. One serves all: each takes milliseconds to make. */
const SCRIPT = new Script('work()');
const context = createContext({});

/**
 * What `work` returns; `undefined` when it has not returned after `limitMs` and was broken off, in the middle of a
 * regular expression if need be. It holds up the thread that long, and must not change anything that outlives it.
 */
export function withinTime<T>(work: () => T, limitMs: number): T | undefined {
  try {
    context['work'] = work;
    return SCRIPT.runInContext(context, { timeout: limitMs });
  } catch (error) {
    if (isTimeout(error)) return undefined;
    throw error;
  } finally {
    context['work'] = undefined;
  }
}

function isTimeout(error: unknown): boolean {
  return (error as NodeJS.ErrnoException | undefined)?.code === 'ERR_SCRIPT_EXECUTION_TIMEOUT';
}
