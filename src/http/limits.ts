/** How long a listener waits and how much it takes. */
export interface ListenerLimits {
  /** Maximum size of request line and header together, in bytes. */
  readonly headerBytesMax: number;
  /** From the first byte of a request, or of a connection, to the end of its header. */
  readonly headersTimeoutMs: number;
  /** Without a byte of a body that we are ready to read. However slow it is, a body that moves goes on. */
  readonly bodyIdleTimeoutMs: number;
  /** Without a byte of our answer being taken: longer than a paused film is left alone, shorter than for ever. */
  readonly answerIdleTimeoutMs: number;
  /** A connection between two requests: more than the 60 s after which Finder looks again. */
  readonly keepAliveTimeoutMs: number;
  /** Without a byte of a request, on a connection on which nobody has shown valid credentials. */
  readonly strangerIdleTimeoutMs: number;
  readonly connectionsMax: number;
  /** Of one client: an IPv4 address, or a /64 of IPv6. */
  readonly connectionsPerAddressMax: number;
}

export const LISTENER_LIMITS: ListenerLimits = {
  // `If` headers with many lock tokens are the longest seen.
  headerBytesMax: 64 * 1024,
  headersTimeoutMs: 30_000,
  bodyIdleTimeoutMs: 120_000,
  answerIdleTimeoutMs: 30 * 60_000,
  keepAliveTimeoutMs: 120_000,
  strangerIdleTimeoutMs: Number.POSITIVE_INFINITY,
  connectionsMax: 2_000,
  connectionsPerAddressMax: 200,
};

/** Header fields of one request; the longest real requests have some 30. */
export const HEADER_FIELDS_MAX = 200;
