import { type Clock, elapsedMs } from '../util/clock.ts';
import type { Meter } from '../util/meter.ts';
import { ApiError } from './errors.ts';
import { CallFailure } from './failure.ts';
import { LostConnection } from './lost-connection.ts';

/** Runs `work`, one request of `route`, and reports its outcome to the meter. */
export async function counted<T>(
  { meter, clock }: { readonly meter: Meter; readonly clock: Clock },
  route: string,
  signal: AbortSignal,
  work: () => Promise<T>,
): Promise<T> {
  const start = clock.instant();
  let outcome = 'ok';
  try {
    return await work();
  } catch (failure) {
    outcome = signal.aborted ? 'cancelled' : outcomeOf(failure);
    throw failure;
  } finally {
    meter.called({ route, outcome, ms: elapsedMs(clock, start) });
  }
}

function outcomeOf(failure: unknown): string {
  if (failure instanceof CallFailure) return failure.reason;
  if (failure instanceof LostConnection) return 'lost';
  return failure instanceof ApiError ? 'refused' : 'defect';
}
