import v8 from 'node:v8';

/** Below this, a process has little memory to spare for objects that nobody needs any more. */
const SMALL_BYTES = 1024 ** 3;

/**
 * Sets up V8 for a program that runs for months with `memoryBytes` of memory. V8 reads these flags when it needs them, in
 * all threads.
 */
export function settleEngine(memoryBytes: number): void {
  // By itself V8 lets the heap grow up to fourfold before it collects: a first listing of 100,000 files would take 50 MB
  // more, and a tenth less processor time.
  v8.setFlagsFromString(`--heap-growing-percent=${memoryBytes < SMALL_BYTES ? 50 : 100}`);
  // WebAssembly is compiled once. The only one here is undici's parser: optimizing it takes 35 MB and 0.1 s of processor
  // time, just when the first clients come, and makes no transfer faster.
  v8.setFlagsFromString('--liftoff-only');
}
