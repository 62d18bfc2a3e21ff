import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';
import { RequestBody } from '../../src/dav/body.ts';
import { clientOf } from '../../src/dav/clients.ts';
import { DavError } from '../../src/dav/errors.ts';
import { FailedPuts } from '../../src/dav/failed-puts.ts';
import type { Drive } from '../../src/dav/method.ts';
import { propfind } from '../../src/dav/methods/propfind.ts';
import { proppatch } from '../../src/dav/methods/proppatch.ts';
import type { DriveState } from '../../src/state/state.ts';
import { silentLog } from '../../src/util/log.ts';
import { type Path, pathOf } from '../../src/util/path.ts';
import { ManualClock } from './manual-clock.ts';
import { MemoryFiles } from './memory-files.ts';
import { memoryState } from './memory-state.ts';
import { parseMultistatus, type Row } from './multistatus.ts';

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The rows of a 207. */
  readonly rows: readonly Row[];
}

/** PROPFIND and PROPPATCH over real HTTP, on a drive in memory. */
export interface PropertyServer {
  readonly port: number;
  readonly files: MemoryFiles;
  readonly state: DriveState;
  readonly clock: ManualClock;
  send(
    method: string,
    target: string,
    body?: string | Uint8Array,
    headers?: Record<string, string>,
  ): Promise<Answer>;
  /** Puts a file there, with its parents. */
  file(path: string, content?: string): Promise<void>;
}

export async function startPropertyServer(
  options: { readonly wrap?: (drive: Drive) => Drive } = {},
): Promise<PropertyServer> {
  const clock = new ManualClock();
  const state = memoryState();
  const files = new MemoryFiles({ clock, properties: state.properties });
  const drive = options.wrap?.({ files, state }) ?? { files, state };
  const server = createServer((request, response) => void answer(request, response, { drive, clock }));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  // A server that listens on a port has an address of this kind.
  const { port } = server.address() as AddressInfo;
  return {
    port,
    files,
    state,
    clock,
    send: async (method, target, body, headers = {}) => {
      const url = `http://127.0.0.1:${port}${target}`;
      const sent = await fetch(url, { method, headers, ...(body !== undefined && { body }) });
      const text = await sent.text();
      const rows = sent.status === 207 ? await parseMultistatus(text) : [];
      return { status: sent.status, headers: sent.headers, text, rows };
    },
    file: async (path, content = '') => {
      const names = path.split('/').filter(Boolean);
      for (let depth = 1; depth < names.length; depth += 1) {
        const folder = pathOf(names.slice(0, depth));
        if (!(await files.stat(folder))) await files.createFolder(folder);
      }
      await files.write(pathOf(names), pieces(content), { mode: { if: 'any' } });
    },
  };
}

async function* pieces(content: string): AsyncIterable<Uint8Array> {
  yield Buffer.from(content);
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  parts: { readonly drive: Drive; readonly clock: ManualClock },
): Promise<void> {
  const gone = new AbortController();
  response.on('close', () => gone.abort());
  const method = request.method === 'PROPPATCH' ? proppatch : propfind;
  try {
    await method({
      ...parts,
      request,
      response,
      client: clientOf(request),
      path: pathIn(request.url ?? '/'),
      namesCollection: false,
      principal: 'ann',
      body: new RequestBody(request, response),
      log: silentLog,
      randomUuid: () => 'uuid',
      failedPuts: new FailedPuts(parts.clock),
      signal: gone.signal,
    });
  } catch (error) {
    if (response.headersSent) return;
    response.writeHead(error instanceof DavError ? error.status : 500, { Connection: 'close' });
    response.end(String(error));
  }
}

function pathIn(target: string): Path {
  const [path = ''] = target.split('?', 1);
  return pathOf(path.split('/').filter(Boolean).map(decodeURIComponent));
}
