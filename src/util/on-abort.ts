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
