/** For whoever is told to end: its time is never over. A signal of its own for each, as many may listen. */
export function unhurried(): AbortSignal {
  return new AbortController().signal;
}
