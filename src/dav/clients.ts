/** What we know of a client program: rows of data, so that no method asks who is calling. */
export interface Client {
  readonly name: string;
  readonly agent: RegExp;
  /** What "the service is busy or away" must be called so that this client waits instead of giving up the file. */
  readonly statusWhenBusy: 503 | 504;
  /** Newer Finders wait 90 s at mount time if the server tells its quota. */
  readonly reportsQuota: boolean;
  /** Explorer shows a folder only up to 1,000,000 bytes of properties. */
  readonly allprop: 'full' | 'lean';
}
