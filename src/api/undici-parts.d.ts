/** The types of undici's parts that `http.ts` imports; the package declares only the whole. */

declare module 'undici/lib/dispatcher/pool.js' {
  import { Pool } from 'undici';
  export default Pool;
}

declare module 'undici/lib/core/connect.js' {
  import type { OnReadOpts, Socket } from 'node:net';
  import type { buildConnector } from 'undici';
  export default function build(options: {
    readonly timeout: number;
    readonly session: Buffer | undefined;
    readonly onread: OnReadOpts;
  }): (...args: Parameters<buildConnector.connector>) => Socket;
}
