import { onTestFinished } from 'vitest';
import type { Drive } from '../../src/dav/context.ts';
import type { DriveState } from '../../src/state/state.ts';
import type { Networks } from '../../src/util/networks.ts';
import { startDav } from './dav.ts';
import type { ManualClock } from './manual-clock.ts';
import type { MemoryFiles } from './memory-files.ts';
import { parseMultistatus, type Row } from './multistatus.ts';

interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** Rows of a 207 answer. */
  readonly rows: readonly Row[];
}

/** A server whose answers are parsed as multistatus. It is closed after its test. */
export interface PropertyServer {
  readonly port: number;
  readonly files: MemoryFiles;
  readonly state: DriveState;
  readonly clock: ManualClock;
  send(method: string, target: string, body?: string, headers?: Record<string, string>): Promise<Answer>;
  /** Writes a file and makes its parent folders. */
  file(path: string, content?: string): Promise<void>;
}

/** Starts a server. `wrap` replaces the drive in memory. */
export async function startPropertyServer(
  options: {
    readonly wrap?: (drive: Drive) => Drive;
    readonly listingBytesMax?: number;
    readonly trustedProxies?: Networks;
  } = {},
): Promise<PropertyServer> {
  const server = await startDav(options);
  onTestFinished(() => server.close());
  return {
    port: server.port,
    files: server.files,
    state: server.state,
    clock: server.clock,
    file: server.file,
    send: async (method, target, body, headers = {}) => {
      const init = { method, headers, ...(body !== undefined && { body }) };
      const sent = await fetch(`http://127.0.0.1:${server.port}${target}`, init);
      const text = await sent.text();
      const rows = sent.status === 207 ? await parseMultistatus(text) : [];
      return { status: sent.status, headers: sent.headers, text, rows };
    },
  };
}
