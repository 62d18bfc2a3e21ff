import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { pipeline } from 'node:stream/promises';
import { Gate } from './gate.ts';
import { passedOn } from './passed-on.ts';

export interface GatedService {
  readonly url: string;
  /** Holds the calls of a function such as `move_v2` from the next on until the gate is opened. */
  close(call: string): Gate;
  /** Holds the answers to the calls of a function until the gate is opened. */
  closeBehind(call: string): Gate;
  /** Returns the functions called since the last `take`, in order. */
  take(): readonly string[];
  /** Returns the number of calls of a function that have no answer yet. */
  waiting(call: string): number;
  end(): Promise<void>;
}

/** Starts a proxy of the service at `target` that knows the calls, and can hold them and their answers. */
export async function startGatedService(target: string): Promise<GatedService> {
  const gates = new Map<string, Gate>();
  const gatesBehind = new Map<string, Gate>();
  const calls: string[] = [];
  const waiting: string[] = [];
  const pass = async (request: IncomingMessage, response: ServerResponse) => {
    const { pathname } = new URL(request.url ?? '', target);
    const call = pathname.slice(pathname.lastIndexOf('/') + 1);
    calls.push(call);
    await gates.get(call)?.pass();
    waiting.push(call);
    const answer = await passedOn(request, target).finally(() => waiting.splice(waiting.indexOf(call), 1));
    await gatesBehind.get(call)?.pass();
    response.writeHead(answer.statusCode ?? 500, answer.headers);
    await pipeline(answer, response);
  };
  const server = createServer((request, response) => {
    // The gateway disconnected, for example during a long poll when it ends.
    pass(request, response).catch(() => response.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    close(call) {
      const gate = new Gate();
      gates.set(call, gate);
      return gate;
    },
    closeBehind(call) {
      const gate = new Gate();
      gatesBehind.set(call, gate);
      return gate;
    },
    take: () => calls.splice(0),
    waiting: (call) => waiting.filter((each) => each === call).length,
    async end() {
      for (const gate of [...gates.values(), ...gatesBehind.values()]) gate.open();
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
