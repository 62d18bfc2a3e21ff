import { type Outcome, StorageError } from '../storage/storage.ts';

/**
 * Number of entries in one transaction: enough to share a flush to disk, and few enough to let other calls through in
 * between.
 */
const CHUNK_ENTRIES = 50;

interface Steps<E, P, T> {
  /** Returns the store's operation for an entry; what it throws is the entry's outcome. */
  readonly prepare: (entry: E) => P;
  readonly run: (prepared: readonly P[]) => Promise<readonly Outcome<T>[]>;
}

/**
 * Returns the outcomes of all entries in their order, chunk by chunk. When the store refuses a chunk as a whole, each
 * of its entries is refused. Stops at `closing`.
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

/** Like `inChunks`, in one chunk. Throws what `run` throws. */
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
