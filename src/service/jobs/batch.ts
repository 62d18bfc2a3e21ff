import { type Outcome, StorageError } from '../storage/storage.ts';

/**
 * Entries that one transaction takes: enough to share a flush to disk, and few enough to let the calls of others
 * through in between.
 */
const CHUNK_ENTRIES = 50;

interface Steps<E, P, T> {
  /** What the store is asked for an entry; what it throws is that entry's outcome. */
  readonly prepare: (entry: E) => P;
  readonly run: (prepared: readonly P[]) => Promise<readonly Outcome<T>[]>;
}

/**
 * The outcomes of all entries, in their order, one chunk after the other. A chunk that the store refuses as a
 * whole is refused for each of its entries. Stops at `closing`.
 */
export async function inChunks<E, P, T>(
  entries: readonly E[],
  closing: AbortSignal,
  { prepare, run }: Steps<E, P, T>,
): Promise<Outcome<T>[]> {
  const steps: Steps<E, P, T> = {
    prepare,
    run: async (prepared) => {
      try {
        return await run(prepared);
      } catch (error) {
        if (error instanceof StorageError) return prepared.map(() => error);
        throw error;
      }
    },
  };
  const outcomes: Outcome<T>[] = [];
  for (let start = 0; start < entries.length; start += CHUNK_ENTRIES) {
    closing.throwIfAborted();
    const chunk = entries.slice(start, start + CHUNK_ENTRIES);
    for (const outcome of await outcomesOf(chunk, steps)) outcomes.push(outcome);
  }
  return outcomes;
}

/** Likewise, all at once. Throws what `run` throws. */
export async function outcomesOf<E, P, T>(
  entries: readonly E[],
  { prepare, run }: Steps<E, P, T>,
): Promise<Outcome<T>[]> {
  const prepared = entries.map((entry) => outcomeOf(() => prepare(entry)));
  const sendable = prepared.filter((one): one is P & Outcome<P> => !(one instanceof StorageError));
  const ran = sendable.length === 0 ? [] : await run(sendable);
  let next = 0;
  return prepared.map((one) => {
    if (one instanceof StorageError) return one;
    const outcome = ran[next++];
    if (outcome === undefined) throw new Error('the store gave fewer outcomes than it was given entries');
    return outcome;
  });
}

function outcomeOf<T>(work: () => T): Outcome<T> {
  try {
    return work();
  } catch (error) {
    if (error instanceof StorageError) return error;
    throw error;
  }
}
