import { createServer, request } from 'node:http';
import { request as requestTls } from 'node:https';
import { text } from 'node:stream/consumers';
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
  const { host, port } = config.listen;
  if (!isLoopback(host) && !config.tls)
    report.warn(
      about,
      `${host} can be reached from outside, and passwords and files cross the network unencrypted: give --tls-cert and --tls-key, or listen on 127.0.0.1 behind a proxy with https`,
    );
  const login = config.users ? 'a login is needed' : 'everyone on this machine may use the drive (--no-auth)';
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

/** Sends a health check without any secret, so its certificate need not be trusted. */
function isDavgateAt({ listen: { host, port }, tls }: Config): Promise<boolean> {
  const everywhere: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' };
  const target = { host: everywhere[host] ?? host, port, path: HEALTH_PATH, timeout: HEALTH_MS };
  return new Promise((resolve) => {
    const outgoing = tls ? requestTls({ ...target, rejectUnauthorized: false }) : request(target);
    outgoing.once('response', (answer) => {
      text(answer).then(
        (body) => resolve(/"status":"(ok|draining)"/.test(body)),
        () => resolve(false),
      );
    });
    outgoing.once('timeout', () => outgoing.destroy());
    outgoing.once('error', () => resolve(false));
    outgoing.end();
  });
}
