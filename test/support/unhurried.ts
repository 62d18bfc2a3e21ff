/** A grace time that never ends. Each caller gets its own signal, since many may listen. */
export function unhurried(): AbortSignal {
  return new AbortController().signal;
}
