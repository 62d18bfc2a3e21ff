import type { Gateway } from '../app/gateway.ts';
import { type Config, resolveConfig } from '../config/configuration.ts';
import { embeddedDrives } from '../config/drive-config.ts';
import type { MadeUpPassword } from '../config/password-file.ts';
import type { Settings } from '../config/settings.ts';
import { refuseUnsharedFiles } from '../config/sharing.ts';
import { takePassedSocket } from '../http/passed-socket.ts';
import { loadServiceThread } from '../service/embedded.ts';
import { memoryBytes } from '../util/memory.ts';
import { PACKAGE_ROOT } from '../util/package.ts';
import { keepCompiledCode } from './compile-cache.ts';
import { settleEngine } from './engine.ts';
import { loadSettings } from './load-settings.ts';
import { terminalLog } from './log.ts';
import { LogFile } from './log-file.ts';
import { type Entry, mountHelp } from './mount-help.ts';
import { namesOfCertificate, urlsForOthers } from './reachable.ts';
import { ReadyFile } from './ready-file.ts';
import { type ServiceManager, serviceManager } from './service-manager.ts';
import { endWhenAskedWhileStarting, untilAskedToStop } from './signals.ts';
import { startWarnings, unusedMetadataWarnings } from './start-warnings.ts';

/** `davgate [serve]`: serves the drive until a signal stops it. Resolves when it has drained. */
export async function serve(
  flags: Settings,
  environment: NodeJS.ProcessEnv,
  { isJson }: { readonly isJson: boolean },
): Promise<void> {
  const read = async () => {
    const { settings, file } = await loadSettings(flags, environment);
    const config = resolveConfig(settings, file, environment, PACKAGE_ROOT);
    refuseUnsharedFiles(settings, config);
    return { config, file };
  };
  const { config, file } = await read();
  terminalLog.configure(config.log, logFileOf(config));
  if ('passedBy' in config.listen) takePassedSocket(environment);
  const readyFile = config.readyFile === undefined ? undefined : await ReadyFile.prepare(config.readyFile);
  keepCompiledCode(config.cacheDirectory);
  settleEngine(memoryBytes());
  const hasStarted = endWhenAskedWhileStarting();
  // Not before the settings are accepted: loading the gateway takes longer than refusing them.
  const embedded = embeddedDrives(config.drives);
  const thread = embedded.length > 0 ? loadServiceThread() : undefined;
  const { startGateway } = await import('../app/gateway.ts');
  const gateway = await startGateway(config, terminalLog, thread);
  const manager = serviceManager(environment, terminalLog);
  // Before the start is announced, so that a program that waits for the announcement can stop davgate in order.
  const stopped = untilAskedToStop(reloading(gateway, manager, async () => (await read()).config));
  hasStarted();
  const unused = unusedMetadataWarnings(environment, embedded.length);
  for (const warning of [...startWarnings(flags, config), ...unused]) terminalLog.warn(warning);
  const places = placesOf(config, gateway);
  console.log(
    isJson
      ? JSON.stringify({ ...places, ...loginOf(config, gateway), pid: process.pid })
      : mountHelp({ ...places, entry: entryOf(config, gateway, file?.origin) }),
  );
  try {
    await readyFile?.write('socketPath' in config.listen ? `unix:${config.listen.socketPath}` : gateway.url);
  } catch (error) {
    await gateway.close();
    throw error;
  }
  await manager.ready();
  await stopped;
  await readyFile?.remove();
  await Promise.all([manager.stopping(), gateway.drain().then(() => gateway.close())]);
}

/** Returns a function that reloads the configuration; reloads run one after the other. */
function reloading(gateway: Gateway, manager: ServiceManager, read: () => Promise<Config>): () => void {
  let last = Promise.resolve();
  return () => {
    last = last.then(async () => {
      await manager.reloading();
      await reload(gateway, read);
      await manager.ready();
    });
  };
}

/** Reloads the configuration. An unusable one is logged, and the previous one stays in force. */
async function reload(gateway: Gateway, read: () => Promise<Config>): Promise<void> {
  try {
    const config = await read();
    const logFile = logFileOf(config);
    const waiting = await gateway.reload(config).catch((error: unknown) => {
      logFile?.close();
      throw error;
    });
    terminalLog.configure(config.log, logFile);
    terminalLog.info('configuration reloaded');
    if (waiting.length > 0)
      terminalLog.warn('some settings change only at the next start', {
        settings: waiting.join(', '),
      });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    terminalLog.error('cannot reload the configuration; the previous one stays in force', { reason });
  }
}

function logFileOf({ log }: Config): LogFile | undefined {
  return log.file === undefined ? undefined : LogFile.open(log.file);
}

function placesOf({ listen, publicUrl, tls }: Config, { url: listening }: Gateway) {
  const others = othersOf(listen, listening);
  const url = publicUrl === undefined ? listening : `${publicUrl}/`;
  return {
    url,
    otherUrls: url === listening ? others : [listening, ...others],
    certificateNames: tls ? namesOfCertificate(tls.certFile, url) : [],
  };
}

function othersOf(listen: Config['listen'], listening: string): readonly string[] {
  if ('host' in listen) return urlsForOthers(listen.host, listening);
  return 'socketPath' in listen ? [`unix:${listen.socketPath}`] : [];
}

function entryOf(
  { users, drives, htpasswdFile, authUrl, oidc }: Config,
  { madeUpPassword }: Gateway,
  file: string | undefined,
): Entry {
  if (!users) return { kind: 'open' };
  const places = [htpasswdFile, authUrl, oidc?.issuer].filter((place) => place !== undefined);
  if (places.length > 0) return { kind: 'listed', drives: drives.length, place: places.join(' or ') };
  const [sole] = users;
  if (!sole) throw new Error('without them there is at least one user');
  if (sole.password === undefined && madeUpPassword)
    return { kind: 'user', name: sole.name, password: passwordText(madeUpPassword) };
  const isOfFile = file !== undefined && (users.length > 1 || sole.passwordHash !== undefined);
  if (isOfFile) return { kind: 'table', users: users.length, drives: drives.length, file };
  return { kind: 'user', name: sole.name, password: '(the one you set)' };
}

/** Returns the users for a script, and where to find the password that davgate made. */
function loginOf({ users }: Config, { madeUpPassword }: Gateway) {
  return {
    users: users?.map(({ name }) => name) ?? [],
    ...(madeUpPassword && { passwordFile: madeUpPassword.file }),
  };
}

/** Shows a new password once, on a terminal only: other standard outputs are logged. */
function passwordText({ text, file, isNew }: MadeUpPassword): string {
  return isNew && process.stdout.isTTY ? `${text}   (stored in ${file})` : `in ${file}`;
}
