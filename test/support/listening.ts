import { afterEach } from 'vitest';
import type { Access } from '../../src/http/admission.ts';
import type { Exchange } from '../../src/http/exchange.ts';
import {
  type GatewayServer,
  type GatewayServerOptions,
  startGatewayServer,
} from '../../src/http/gateway-server.ts';
import { hashPassword } from '../../src/http/passwords.ts';
import type { HttpRequest, HttpResponse } from '../../src/util/http-messages.ts';
import type { LogFields } from '../../src/util/log.ts';
import { connectRaw, type RawConnection } from './raw-http.ts';

export interface Listening {
  readonly port: number;
  readonly listener: GatewayServer;
  readonly url: string;
  readonly lines: readonly { readonly event: string; readonly fields: LogFields }[];
  /** Opens a connection, closed at the end of the test. */
  connect(first?: string): RawConnection;
  close(): Promise<void>;
  /** Ends the grace time of `close` for running requests. */
  cutOff(): void;
}

export const ANN = {
  name: 'ann',
  passwordHash: await hashPassword('secret', { n: 2, r: 1, p: 1 }),
  grants: [{ drive: 'd' }],
};
export const ANN_HEADER = `Authorization: Basic ${Buffer.from('ann:secret').toString('base64')}\r\n`;

/** The listener's host name in requests. */
const HOST = 'x';

const closers: (() => unknown)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

interface ListeningOptions extends Partial<Omit<GatewayServerOptions<undefined>, 'handle'>> {
  readonly handle?: (
    request: HttpRequest,
    response: HttpResponse,
    access: Access<undefined>,
    exchange: Exchange,
  ) => Promise<void>;
}

/** Starts a listener on a free port, by default without authentication and with the answer "handled". */
export async function listening({
  handle = (_request, _response, _access, exchange) =>
    exchange.answer({ status: 200, headers: {}, body: 'handled' }),
  ...options
}: ListeningOptions = {}): Promise<Listening> {
  const lines: { event: string; fields: LogFields }[] = [];
  const note = (event: string, fields: LogFields = {}) => void lines.push({ event, fields });
  const listener = await startGatewayServer({
    host: '127.0.0.1',
    port: 0,
    users: undefined,
    driveOf: () => undefined,
    ownNames: [HOST],
    handle: (exchange, access) => handle(exchange.request, exchange.response, access, exchange),
    log: { info: note, warn: note, error: note },
    ...options,
  });
  const over = new AbortController();
  const close = () => listener.close(over.signal);
  closers.push(() => {
    // A failed test must not wait for its own hanging requests.
    over.abort();
    return close();
  });
  return {
    port: listener.port,
    listener,
    url: listener.url,
    lines,
    connect(first = '') {
      const connection = connectRaw(listener.port, first);
      closers.push(() => connection.socket.destroy());
      return connection;
    },
    close,
    cutOff: () => over.abort(),
  };
}

/** Returns the text of a request. Each of `lines` ends with CR LF. */
export function request(method: string, target: string, lines = '', body = ''): string {
  return `${method} ${target} HTTP/1.1\r\nHost: ${HOST}\r\n${lines}\r\n${body}`;
}
