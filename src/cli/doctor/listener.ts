import { access, constants } from 'node:fs/promises';
import { createServer, request } from 'node:http';
import { request as requestTls } from 'node:https';
import { dirname } from 'node:path';
import { text } from 'node:stream/consumers';
import type { SocketAddress } from '../../config/address.ts';
import type { Config } from '../../config/configuration.ts';
import { HEALTH_PATH } from '../../http/monitoring.ts';
import { ListenError, listen } from '../../http/node-server.ts';
import { isLoopback } from '../../util/networks.ts';
import type { Report } from './report.ts';

/** How long a davgate on this machine may take to answer a health check, in ms. */
const HEALTH_MS = 5_000;

/** Checks that the address is free or used by a davgate, and that it is safe to listen on. */
export async function checkListener(config: Config, report: Report): Promise<void> {
  const about = 'listener';
  const login = config.users ? 'a login is needed' : 'everyone on this machine may use the drive (--no-auth)';
  if ('passedBy' in config.listen)
    return report.ok(about, `systemd passes the socket (systemctl status davgate.socket); ${login}`);
  if (!('host' in config.listen)) return checkSocket(config.listen, config, login, report);
  const { host, port } = config.listen;
  if (!isLoopback(host) && !config.tls)
    report.warn(
      about,
      `${host} can be reached from outside, and passwords and files cross the network unencrypted: give --tls-cert and --tls-key, or listen on 127.0.0.1 behind a proxy with https`,
    );
  const server = createServer();
  try {
    await listen(server, host, port);
    report.ok(about, `${host}:${port} is free; ${login}`);
  } catch (error) {
    if (!(error instanceof ListenError)) throw error;
    const isInUse = (error.cause as NodeJS.ErrnoException | undefined)?.code === 'EADDRINUSE';
    if (isInUse && (await isDavgateAt(config)))
      report.ok(about, `${host}:${port} is in use by a davgate that is running; ${login}`);
    else report.fail(about, error.message);
  } finally {
    server.close();
  }
}

/** Checks that a davgate listens on the socket, or that one could. */
async function checkSocket(
  { socketPath }: SocketAddress,
  config: Config,
  login: string,
  report: Report,
): Promise<void> {
  const about = 'listener';
  if (await isDavgateAt(config))
    return report.ok(about, `unix:${socketPath} is in use by a davgate that is running; ${login}`);
  try {
    await access(dirname(socketPath), constants.W_OK);
    report.ok(about, `davgate can listen on unix:${socketPath}; ${login}`);
  } catch {
    report.fail(
      about,
      `cannot listen on unix:${socketPath}: this user may not make files in its directory, or it does not exist; make it`,
    );
  }
}

/** Sends a health check without any secret, so its certificate need not be trusted. */
async function isDavgateAt({ listen, tls }: Config): Promise<boolean> {
  if ('passedBy' in listen) return false;
  const everywhere: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' };
  const place =
    'host' in listen
      ? { host: everywhere[listen.host] ?? listen.host, port: listen.port }
      : { socketPath: listen.socketPath };
  const target = { ...place, path: HEALTH_PATH, timeout: HEALTH_MS };
  return await new Promise((resolve) => {
    const outgoing = tls ? requestTls({ ...target, rejectUnauthorized: false }) : request(target);
    outgoing.once('response', (answer) => {
      text(answer).then(
        (body) => resolve(/"status":"(ok|draining)"/.test(body)),
        () => resolve(false),
      );
    });
    outgoing.once('timeout', () => outgoing.destroy());
    // A davgate whose clients need a certificate answers nothing else.
    outgoing.once('error', ({ code }: NodeJS.ErrnoException) =>
      resolve(tls?.clientCaFile !== undefined && code === 'ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED'),
    );
    outgoing.end();
  });
}
