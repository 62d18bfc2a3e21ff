import { once } from 'node:events';
import {
  createServer,
  request as httpRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';

/** A call on its way to the service. */
interface EditedCall {
  /** Like `files/move_v2`. */
  readonly route: string;
  /** The argument; `undefined` if the call has none as JSON. */
  readonly arg: unknown;
}

export interface EditedAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders | OutgoingHttpHeaders;
  /** One character for each byte. */
  readonly text: string;
}

export interface EditedService {
  readonly url: string;
  /** The functions called so far, in order. */
  readonly routes: readonly string[];
  /** Answers a call in place of the service, which does not get it. `undefined`: the service answers. */
  instead: (call: EditedCall) => EditedAnswer | undefined;
  /** Returns the answer that the client gets. `lost`: the connection is closed instead. */
  edit: (call: EditedCall, answer: EditedAnswer) => EditedAnswer | 'lost';
  close(): Promise<void>;
}

/** Returns a refusal with an error union, as the service sends it. */
export function refusal(error: Record<string, unknown>, summary: string): EditedAnswer {
  const text = JSON.stringify({ error_summary: `${summary}/..`, error });
  return { status: 409, headers: { 'content-type': 'application/json' }, text };
}

/** Starts a proxy of the service at `target` that may answer by itself, and may change answers. */
export async function startEditedService(target: string): Promise<EditedService> {
  const server = createServer((request, response) => {
    // The gateway disconnects, for example during a long poll when it ends.
    pass(request, response).catch(() => response.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const routes: string[] = [];
  const edited: EditedService = {
    url: `http://127.0.0.1:${port}`,
    routes,
    instead: () => undefined,
    edit: (_, answer) => answer,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };

  const pass = async (request: IncomingMessage, response: ServerResponse) => {
    const body = await buffer(request);
    const call = callOf(request, body);
    routes.push(call.route);
    const answer = edited.instead(call) ?? edited.edit(call, await forward(target, request, body, response));
    if (answer === 'lost') return void response.destroy();
    const bytes = Buffer.from(answer.text, 'latin1');
    const { 'transfer-encoding': _, ...headers } = answer.headers;
    response.writeHead(answer.status, { ...headers, 'content-length': bytes.length }).end(bytes);
  };
  return edited;
}

function callOf({ url = '', headers }: IncomingMessage, body: Buffer): EditedCall {
  const { 'dropbox-api-arg': header, 'content-type': type } = headers;
  const text = typeof header === 'string' ? header : type === 'application/json' ? String(body) : 'null';
  return { route: url.replace(/^\/(2\/)?/, ''), arg: JSON.parse(text) ?? undefined };
}

async function forward(
  target: string,
  { url, method = 'POST', headers }: IncomingMessage,
  body: Buffer,
  response: ServerResponse,
): Promise<EditedAnswer> {
  const outgoing = httpRequest(target + url, { method, headers, agent: false });
  response.on('close', () => outgoing.destroy());
  outgoing.end(body);
  const [answer] = (await once(outgoing, 'response')) as [IncomingMessage];
  const text = (await buffer(answer)).toString('latin1');
  return { status: answer.statusCode ?? 500, headers: answer.headers, text };
}
