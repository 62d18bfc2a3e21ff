import { once } from 'node:events';
import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { pipeline } from 'node:stream/promises';
import { Gate } from './gate.ts';

export interface GatedService {
  readonly url: string;
  /** Holds up the calls of a function, `move_v2` for one, from the next on until the gate is opened. */
  close(call: string): Gate;
  /** Lets the service do the calls of a function, and holds up its answers. */
  closeBehind(call: string): Gate;
  end(): Promise<void>;
}

/** Stands between a gateway and the service at `target`, and passes all on that is not held up. */
export async function startGatedService(target: string): Promise<GatedService> {
  const gates = new Map<string, Gate>();
  const gatesBehind = new Map<string, Gate>();
  const pass = async (request: IncomingMessage, response: ServerResponse) => {
    const { pathname } = new URL(request.url ?? '', target);
    const call = pathname.slice(pathname.lastIndexOf('/') + 1);
    await gates.get(call)?.pass();
    const { method, headers } = request;
    const outgoing = httpRequest(new URL(request.url ?? '', target), { method, headers, agent: false });
    const answered = once(outgoing, 'response');
    await pipeline(request, outgoing);
    const [answer] = (await answered) as [IncomingMessage];
    await gatesBehind.get(call)?.pass();
    response.writeHead(answer.statusCode ?? 500, answer.headers);
    await pipeline(answer, response);
  };
  const server = createServer((request, response) => {
    // A gateway that hangs up in the middle of a long poll, at its end for one.
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
    async end() {
      for (const gate of [...gates.values(), ...gatesBehind.values()]) gate.open();
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
