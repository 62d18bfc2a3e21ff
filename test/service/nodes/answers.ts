import { setTimeout as pause } from 'node:timers/promises';
import { WAIT_MS } from '../../support/eventually.ts';

/** Pause before a call is repeated, in ms. */
const PAUSE_MS = 50;

/** A call without an answer: the connection ended, or the service says that it cannot tell now. */
export const UNANSWERED = Symbol('unanswered');

/** Whether a refusal asks for another attempt: the store is away (503), or others write for too long (429). */
export function isPassing(refusal: string): boolean {
  return /^!?(503|429) /.test(refusal);
}

/** Makes a call once. An answer other than 200, 409, 429 and 503 throws. */
export async function once<T>(call: () => Promise<T | string>): Promise<T | string | typeof UNANSWERED> {
  try {
    const answer = await call();
    if (typeof answer !== 'string' || !/^!?\d\d\d /.test(answer)) return answer;
    if (isPassing(answer)) return UNANSWERED;
    throw new Error(`an answer that nobody expects: ${answer}`);
  } catch (failure) {
    // What `fetch` throws when the connection fails.
    if (failure instanceof TypeError) return UNANSWERED;
    throw failure;
  }
}

/** Repeats a call until it has an answer. */
export async function patiently<T>(call: () => Promise<T | string>): Promise<T | string> {
  for (const started = Date.now(); ; ) {
    const answer = await once(call);
    if (answer !== UNANSWERED) return answer;
    if (Date.now() - started > WAIT_MS) throw new Error('no call is answered any more');
    await pause(PAUSE_MS);
  }
}
