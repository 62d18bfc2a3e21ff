/**
 * Returns a grace time that never ends. Each caller gets its own signal, because a signal may have many
 * listeners.
 */
export function unhurried(): AbortSignal {
  return new AbortController().signal;
}
