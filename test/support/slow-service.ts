import { once } from 'node:events';
import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';

/** `silent` never answers a call; `dripping` sends one byte of each answer's body a second. */
export type Pace = 'well' | 'silent' | 'dripping';

export interface SlowService {
  readonly url: string;
  /** The pace of later calls. */
  pace: Pace;
  /** Number of calls received at a pace other than `well`. */
  readonly slowed: number;
  close(): Promise<void>;
}

/** Starts a proxy of the service at `target` that forwards calls at its pace. */
export async function startSlowService(target: string): Promise<SlowService> {
  const server = createServer((request, response) => {
    pass(request, response).catch(() => response.destroy());
  });
  const slow = {
    url: '',
    pace: 'well' as Pace,
    slowed: 0,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
  const pass = async (request: IncomingMessage, response: ServerResponse) => {
    const { pace } = slow;
    const body = await buffer(request);
    if (pace !== 'well') slow.slowed += 1;
    if (pace === 'silent') return;
    const { method = 'POST', headers } = request;
    const outgoing = httpRequest(target + request.url, { method, headers, agent: false });
    response.on('close', () => outgoing.destroy());
    outgoing.end(body);
    const [answer] = (await once(outgoing, 'response')) as [IncomingMessage];
    response.writeHead(answer.statusCode ?? 500, answer.headers);
    if (pace === 'well') return void answer.pipe(response);
    drip(await buffer(answer), response);
  };
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  slow.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return slow;
}

function drip(body: Buffer, response: ServerResponse): void {
  let sent = 0;
  const timer = setInterval(() => {
    response.write(body.subarray(sent, sent + 1));
    sent += 1;
    if (sent >= body.length) response.end();
  }, 1_000);
  response.on('close', () => clearInterval(timer));
}
