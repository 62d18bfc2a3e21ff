/** Timeouts and maximum sizes of a listener. */
export interface ListenerLimits {
  /** Maximum size of request line and header together, in bytes. */
  readonly headerBytesMax: number;
  /** Maximum time from the first byte of a request, or the start of a connection, to the end of the header. */
  readonly headersTimeoutMs: number;
  /** Maximum time without a byte of a body that we are ready to read. A slow body that progresses is never cut. */
  readonly bodyIdleTimeoutMs: number;
  /** Maximum time in which the client takes no byte of our answer: long enough for a paused film. */
  readonly answerIdleTimeoutMs: number;
  /** Maximum time between two requests of a connection: more than the 60 s after which Finder polls again. */
  readonly keepAliveTimeoutMs: number;
  /** Maximum time without a byte of a request, on a connection without a valid login so far. */
  readonly unauthenticatedIdleTimeoutMs: number;
  readonly connectionsMax: number;
  /** Maximum for one client: an IPv4 address, or a /64 of IPv6. */
  readonly connectionsPerAddressMax: number;
}

export const LISTENER_LIMITS: ListenerLimits = {
  // The longest seen are `If` headers with many lock tokens.
  headerBytesMax: 64 * 1024,
  headersTimeoutMs: 30_000,
  bodyIdleTimeoutMs: 120_000,
  answerIdleTimeoutMs: 30 * 60_000,
  keepAliveTimeoutMs: 120_000,
  unauthenticatedIdleTimeoutMs: Number.POSITIVE_INFINITY,
  connectionsMax: 2_000,
  connectionsPerAddressMax: 200,
};
