import { createContext, Script } from 'node:vm';

/** Runs the work: only a script's time limit can end work that never awaits. Shared, as a script takes ms to compile. */
const SCRIPT = new Script('work()');
const context = createContext({});

/**
 * Returns the result of `work`, or `undefined` if it was ended after `limitMs`, even within a regular expression. Blocks
 * the thread that long. `work` must not change anything that outlives it.
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
