import { totalmem } from 'node:os';

/** Returns the memory that this process may use, in bytes: the limit of its container, or the machine's memory. */
export function memoryBytes(): number {
  // 0 or a huge number means that there is no limit.
  const limit = process.constrainedMemory();
  return limit > 0 ? Math.min(limit, totalmem()) : totalmem();
}
