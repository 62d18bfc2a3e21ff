/** Faults of `davgate service`, by name. */
export type Faults = Readonly<Record<string, number>>;

/** 50 ms on reads, 100 ms on writes. */
const DISTANCE: Faults = { 'latency-metadata-ms': 50, 'latency-read-ms': 50, 'latency-write-ms': 100 };

/** 429 above 12 calls a second, after a burst large enough for a walk of 200 folders. */
const RATE: Faults = { 'rate-per-second': 12, 'rate-burst': 250 };

/** A commit blocks its namespace for its last 20 ms, and other commits are refused at once. */
const CONTENTION: Faults = { 'contention-hold-ms': 20 };

/** The limits of a typical account of the real service. */
export const REALISTIC: Faults = { ...DISTANCE, ...RATE, ...CONTENTION };

export const WITHOUT_CONTENTION: Faults = { ...DISTANCE, ...RATE };

/** A service nearby without limits. */
export const NEAR: Faults = { 'latency-metadata-ms': 20, 'latency-read-ms': 20, 'latency-write-ms': 20 };
