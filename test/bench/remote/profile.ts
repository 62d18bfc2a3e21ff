/** Faults of `davgate service`, by name. */
export type Faults = Readonly<Record<string, number>>;

/** 50 ms on reads, 100 ms on writes. */
const DISTANCE: Faults = { 'latency-metadata-ms': 50, 'latency-read-ms': 50, 'latency-write-ms': 100 };

/** 429 beyond 12 calls a second, after a burst that a walk of 200 folders fits into. */
const RATE: Faults = { 'rate-per-second': 12, 'rate-burst': 250 };

/** A commit keeps others out of its namespace for its last 20 ms: they are refused at once. */
const CONTENTION: Faults = { 'contention-hold-ms': 20 };

/** An account of the real service as its users know it. */
export const REALISTIC: Faults = { ...DISTANCE, ...RATE, ...CONTENTION };

export const WITHOUT_CONTENTION: Faults = { ...DISTANCE, ...RATE };

/** A near service without limits, for the works that ask for it. */
export const NEAR: Faults = { 'latency-metadata-ms': 20, 'latency-read-ms': 20, 'latency-write-ms': 20 };
