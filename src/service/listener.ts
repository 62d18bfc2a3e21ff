import type { Answer } from '../http/exchange.ts';
import { ClientGone, type Exchange } from '../http/exchange.ts';
import type { ListenerLimits } from '../http/limits.ts';
import { type CertificateFiles, urlFromOutside } from '../http/node-server.ts';
import { startServer } from '../http/server.ts';
import type { Clock } from '../util/clock.ts';
import type { Log } from '../util/log.ts';
import { Networks } from '../util/networks.ts';
import { faultAnswer } from './api/answers.ts';

const LIMITS: ListenerLimits = {
  // An argument may contain a deep path with each character escaped to six bytes.
  headerBytesMax: 128 * 1024,
  headersTimeoutMs: 60_000,
  bodyIdleTimeoutMs: 600_000,
  answerIdleTimeoutMs: 600_000,
  // Longer than clients keep idle connections, so that they rarely use one that is just being closed.
  keepAliveTimeoutMs: 75_000,
  unauthenticatedIdleTimeoutMs: 60_000,
  connectionsMax: 10_000,
  connectionsPerAddressMax: 200,
};

export interface Listener {
  /** Without a slash at the end; names `localhost` when the listener is bound to all addresses. */
  readonly url: string;
  /** The same URL as other machines reach it. */
  readonly publicUrl: string;
  /** Uses this certificate for new connections. Throws `CertificateError`, and then keeps the old one. */
  replaceCertificate(tls: CertificateFiles): void;
  /** Accepts no more requests, waits until `over` for running ones, and then ends all connections. */
  close(over: AbortSignal): Promise<void>;
}

export interface ListenerOptions {
  readonly listen: { readonly host: string; readonly port: number };
  /** Serves https with these. */
  readonly tls?: CertificateFiles | undefined;
  readonly clock: Clock;
  readonly log: Log;
  readonly limits?: Partial<ListenerLimits> | undefined;
  readonly trustedProxies?: Networks | undefined;
  /** Throws only `ClientGone`, when nobody can be answered. */
  readonly answer: (exchange: Exchange) => Promise<Answer>;
}

/** Opens the port. Throws `ListenError` and `CertificateError`. */
export async function startListener(options: ListenerOptions): Promise<Listener> {
  const { listen, tls, clock, log } = options;
  const server = await startServer({
    ...listen,
    limits: { ...LIMITS, ...options.limits },
    proxies: options.trustedProxies ?? new Networks(),
    tls,
    clock,
    log,
    headers: ({ requestId }) => ({ 'X-Dropbox-Request-Id': requestId }),
    handle: (exchange) => serve(exchange, options),
  });
  return {
    url: server.url.replace(/\/$/, ''),
    publicUrl: urlFromOutside(listen.host, server.port, tls !== undefined),
    replaceCertificate: (files) => server.replaceCertificate(files),
    async close(over) {
      await server.close(over);
      await server.idle();
    },
  };
}

async function serve(exchange: Exchange, { answer, log }: ListenerOptions): Promise<void> {
  const { requestId, response, signal } = exchange;
  try {
    await exchange.answer(await answer(exchange));
  } catch (error) {
    if (!(error instanceof ClientGone) && !signal.aborted)
      log.error('an answer could not be sent', { requestId, error: String(error) });
    if (response.headersSent || error instanceof ClientGone) exchange.drop();
    else await exchange.answer(faultAnswer(requestId));
  }
}
