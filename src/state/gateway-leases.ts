/** The running gateways of a drive. */
export interface GatewayLeases {
  /** The id of this gateway. */
  readonly gateway: string;
  /** Keeps this gateway among the running ones for `leaseMs`. Returns the ids of all, in order. */
  renew(leaseMs: number): Promise<readonly string[]>;
  /** Removes this gateway. */
  end(): Promise<void>;
}
