import { setMaxListeners } from 'node:events';

/**
 * Calls `listener` with the signal's reason when `signal` is aborted: at once, before this returns, if it is aborted
 * already. The returned function removes the listener: a signal that lives on would keep it for ever.
 */
export function onAbort(signal: AbortSignal | undefined, listener: (reason: unknown) => void): () => void {
  const listen = () => listener(signal?.reason);
  if (signal?.aborted) listen();
  else signal?.addEventListener('abort', listen, { once: true });
  return () => signal?.removeEventListener('abort', listen);
}

export interface LinkedSignal {
  readonly signal: AbortSignal;
  /** Lets go of the sources, when the work is over. An abort does so too: nobody else may be there to do it. */
  readonly release: () => void;
}

/**
 * A signal for one piece of work, aborted with the first of `sources`. Not `AbortSignal.any`: on Node 20 that leaves an
 * entry for ever at a source that lives as long as the process, up to the 2^24 of a full `Set`.
 */
export function linkedSignal(...sources: readonly AbortSignal[]): LinkedSignal {
  const linked = new AbortController();
  const links: (() => void)[] = [];
  const release = () => {
    for (const unlink of links.splice(0)) unlink();
  };
  for (const source of sources) {
    if (source.aborted) linked.abort(source.reason);
    if (linked.signal.aborted) break;
    // Many pieces of work may hang on one signal: that is no leak, as each lets go when it ends.
    setMaxListeners(0, source);
    const unlink = onAbort(source, (reason) => {
      linked.abort(reason);
      release();
    });
    links.push(unlink);
  }
  if (linked.signal.aborted) release();
  return { signal: linked.signal, release };
}
