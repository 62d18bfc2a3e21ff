import { join } from 'node:path';
import { createBrowserHandler } from '../browser/handler.ts';
import type { Drive } from '../browser/route.ts';
import { createSendHandler } from '../browser/sending.ts';
import { type Config, controlSocketIn } from '../config/configuration.ts';
import type { MadeUpPassword } from '../config/password-file.ts';
import { firstDriveOf } from '../config/users.ts';
import { clientNameOf } from '../dav/clients.ts';
import { createDavHandler } from '../dav/handler.ts';
import { startControl } from '../http/control.ts';
import type { User } from '../http/credentials.ts';
import { type GatewayServer, startGatewayServer } from '../http/gateway-server.ts';
import { createLinkProxy, LINKS_PATH } from '../http/link-proxy.ts';
import { createMetrics, type DriveGauges, type Metrics } from '../http/metrics.ts';
import type { Health } from '../http/monitoring.ts';
import { urlFromOutside } from '../http/node-server.ts';
import { openWebApp, SEND_PAGE } from '../http/web-app.ts';
import type { ServiceThread } from '../service/embedded.ts';
import { systemClock } from '../util/clock.ts';
import { withinGrace } from '../util/grace.ts';
import type { Log } from '../util/log.ts';
import { OWN_LOOK } from '../util/look.ts';
import { PACKAGE_ROOT } from '../util/package.ts';
import { AppPasswords } from './app-passwords.ts';
import { controlCommands, keptWritesOf } from './control-commands.ts';
import { openDrives, type ServedDrives } from './drives.ts';
import { externalLogin } from './external-login.ts';
import { loginsOf } from './logins.ts';
import { OpenResources } from './open-resources.ts';
import { reload } from './reload.ts';
import { UploadLinks } from './upload-links.ts';
import { type SharedDrive, userDrives } from './user-drives.ts';

/** A running gateway. */
export interface Gateway {
  /** The address at which clients mount the drive. */
  readonly url: string;
  /** The password of the only user, if the configuration sets none. */
  readonly madeUpPassword: MadeUpPassword | undefined;
  /**
   * Takes over the users and the certificate of `config` without closing a connection. Returns the changed settings that
   * wait for the next start. Throws like `startGateway`, and then nothing has changed.
   */
  reload(config: Config): Promise<readonly string[]>;
  /**
   * Tells balancers to send requests elsewhere, and answers all that come until `--drain-seconds` are over. Call `close` after
   * it.
   */
  drain(): Promise<void>;
  /** Closes within the grace period: takes no new requests, lets running ones finish, commits placeholders. */
  close(): Promise<void>;
}

/**
 * Starts everything that `config` asks for; resolves when clients can connect. If davgate cannot start with it, closes
 * what is already open and throws `ConfigError` or another of the errors in `cli/start-failure.ts`. `thread` is that of the
 * embedded service, if it is being loaded already.
 */
export async function startGateway(config: Config, log: Log, thread?: ServiceThread): Promise<Gateway> {
  const opened = new OpenResources();
  const close = () => withinGrace({ clock: systemClock, log }, (over) => opened.close(over));
  try {
    const { users, madeUpPassword } = await loginsOf(config);
    const metrics = createMetrics(clientNameOf);
    const served = await openDrives(config, { log, meter: metrics.meter, opened, thread });
    let server: GatewayServer | undefined;
    // The locks in a shared Redis can be read by any process; those in SQLite only through the running one.
    if (config.redisUrl === undefined) {
      const commands = controlCommands(served.drives, log);
      const address = () => server?.url;
      opened.add(await startControl({ socketPath: controlSocketIn(config), ...commands, address, log }));
    }
    server = opened.add(await serve(config, { users, served, metrics, log }));
    served.embedded?.setLinkUrl(`${publicUrlOf(config, server)}${LINKS_PATH}`);
    return {
      url: server.url,
      madeUpPassword,
      reload: (next) => reload(server, config, next),
      drain: () => drain(server, config.drainSeconds ?? 0),
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

async function drain(server: GatewayServer, seconds: number): Promise<void> {
  if (seconds === 0) return;
  server.announceClose();
  await systemClock.sleep(seconds * 1000);
}

interface Serving {
  readonly users: readonly User[] | undefined;
  readonly served: ServedDrives;
  readonly metrics: Metrics;
  readonly log: Log;
}

async function serve(config: Config, { users, served, metrics, log }: Serving): Promise<GatewayServer> {
  const { drives, embedded, blockCacheBytes, memory, pieces, stateTrouble } = served;
  const gauges = () => [...drives.values()].map((drive) => drive.gauges());
  metrics.watch({ drives: gauges, blockCacheBytes, stateTrouble });
  const { hasHistoryFolders } = config;
  const driveOf = userDrives(sharedDrives(config, drives), { hasHistoryFolders });
  const look = config.brand ?? OWN_LOOK;
  const webApp = openWebApp(join(PACKAGE_ROOT, 'dist/webapp'), look);
  let server: GatewayServer | undefined;
  /** Returns the drive that a user's name alone stands for now; without logins, nobody's. */
  const driveOfName = (name: string | undefined) => {
    if (!users) return name === undefined ? driveOf(undefined) : undefined;
    const user = (server?.users() ?? users).find((one) => one.name === name);
    return user && driveOf(user);
  };
  const appPasswords = new AppPasswords(served.appPasswords, systemClock);
  // They log in with the rights of the table, which may be more than --auth-url has given this login.
  const appPasswordsOf = (user: string, drive: Drive) =>
    driveOfName(user)?.rights === drive.rights ? appPasswords.of(user) : undefined;
  const uploadLinks = new UploadLinks({
    store: served.uploadLinks,
    clock: systemClock,
    driveOf: driveOfName,
    pageUrl: () => (server ? `${publicUrlOf(config, server)}${SEND_PAGE}` : SEND_PAGE),
  });
  const uploadLinksOf = (user: string | undefined, drive: Drive) => uploadLinks.of(user, drive);
  const handleApi = createBrowserHandler({ clock: systemClock, log, appPasswordsOf, uploadLinksOf });
  const linkOf = (token: string) => uploadLinks.open(token);
  const handleSending = createSendHandler({ clock: systemClock, log, linkOf });
  const handleDav = createDavHandler({
    clock: systemClock,
    log,
    listingBytesMax: memory.listingBytesMax,
    folderPage: webApp?.page,
    pieces,
    checksums: config.checksums,
  });
  const links = embedded && createLinkProxy(embedded.url, log);
  const signInProvider = await signInProviderOf(config, log);
  server = await startGatewayServer({
    ...listenerOf(config),
    tls: config.tls,
    hasHttp2: config.tls?.hasHttp2,
    users,
    checkAppPassword: (user, password) => appPasswords.check(user, password),
    checkLogin: config.authUrl === undefined ? undefined : externalLogin(config.authUrl, config.drives),
    signInProvider,
    look,
    ownNames: ownNamesOf(config),
    trustedProxies: config.trustedProxies,
    basePath: config.basePath,
    crossOrigins: config.crossOrigins,
    bandwidth: config.bandwidth,
    metrics,
    health: () => healthOf(gauges(), stateTrouble()),
    unreadiness: () => (stateTrouble() === undefined ? undefined : 'the shared state is away'),
    openRoute: (exchange, closing) =>
      webApp?.serve(exchange, closing) ?? handleSending(exchange, closing) ?? links?.(exchange, closing),
    log,
    isLoggingRequests: config.logRequests,
    driveOf,
    ownRoute: handleApi,
    handle: (exchange, { user, drive }) => handleDav(exchange, { user, drive: drive.webdav }),
  });
  return server;
}

/** Returns the OpenID Connect provider, which is asked at the first sign-in. */
async function signInProviderOf({ oidc, publicUrl, drives }: Config, log: Log) {
  if (!oidc) return undefined;
  const { OidcSignIn } = await import('../http/oidc-sign-in.ts');
  const grants = firstDriveOf(drives);
  const newUser = oidc.users === 'all' ? (name: string) => ({ name, grants }) : undefined;
  return new OidcSignIn({ client: oidc, name: oidc.name, publicUrl, newUser, clock: systemClock, log });
}

function sharedDrives(config: Config, drives: ServedDrives['drives']): ReadonlyMap<string, SharedDrive> {
  const configured = new Map(config.drives.map((drive) => [drive.name, drive]));
  return new Map(
    [...drives].map(([name, drive]) => {
      const { files } = drive;
      const { history, state, changes, changeLog, catchUp } = files;
      const { isReadOnly = false, deletePolicy } = configured.get(name) ?? {};
      const shared = {
        ...{ files, history, state, changes, changeLog, catchUp, isReadOnly },
        keptWrites: keptWritesOf(name, drive),
        keepsDeleted: deletePolicy !== 'permanent',
      };
      return [name, shared];
    }),
  );
}

/** Sums up what all drives have not sent to the storage service yet, and tells what is in trouble. */
function healthOf(drives: readonly DriveGauges[], stateTrouble: string | undefined): Health {
  const sum = { heldFiles: 0, journalFiles: 0, journalBytes: 0, lostFiles: 0 };
  let trouble: string | undefined;
  for (const { journal, placeholders } of drives) {
    trouble ??= journal.trouble;
    sum.heldFiles += placeholders;
    sum.journalFiles += journal.files;
    sum.journalBytes += journal.bytes;
    sum.lostFiles += journal.lostFiles;
  }
  return {
    ...sum,
    ...(trouble !== undefined && { journalTrouble: trouble }),
    ...(stateTrouble !== undefined && { stateTrouble }),
  };
}

function listenerOf({ listen }: Config) {
  if ('host' in listen) return listen;
  const socket = 'passedBy' in listen ? listen.passedBy : listen;
  return { host: 'localhost', port: 0, socket };
}

/** Returns the address that links begin with, without a slash at the end. */
function publicUrlOf({ publicUrl, basePath, listen, tls }: Config, { url, port }: GatewayServer): string {
  if (publicUrl !== undefined) return publicUrl;
  if (!('host' in listen)) return url.slice(0, -1);
  return `${urlFromOutside(listen.host, port, tls !== undefined)}${basePath}`;
}

/** Returns the host names under which clients may reach this gateway. */
function ownNamesOf({ publicUrl, listen }: Config): readonly string[] {
  const names = 'host' in listen ? [listen.host.toLowerCase()] : [];
  return publicUrl === undefined ? names : [...names, new URL(publicUrl).hostname];
}
