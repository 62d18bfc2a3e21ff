import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { createRemote } from '../api/client.ts';
import { type Config, controlSocketIn } from '../config/configuration.ts';
import { type DriveConfig, embeddedDrives, type RemoteService } from '../config/drive-config.ts';
import { type MadeUpPassword, madeUpPassword } from '../config/password-file.ts';
import { ConfigError } from '../config/settings.ts';
import { clientOf } from '../dav/clients.ts';
import type { Drive } from '../dav/context.ts';
import { createDavHandler } from '../dav/handler.ts';
import { type BlockCache, openBlockCache } from '../drive/content/block-cache.ts';
import { type DriveOptions, type OpenDrive, openDrive } from '../drive/drive.ts';
import { FileError } from '../drive/errors.ts';
import type { Files } from '../drive/files.ts';
import { openSpool, type Spool } from '../drive/spool/spool.ts';
import { startControl } from '../http/control.ts';
import type { User } from '../http/credentials.ts';
import type { Health } from '../http/health.ts';
import { LINKS_PATH, linkSite, type OpenSite } from '../http/link-site.ts';
import { type Listener, startListener } from '../http/listener.ts';
import { createMetrics, type DriveGauges, type Metrics } from '../http/metrics.ts';
import { urlFromOutside } from '../http/node-server.ts';
import { hashPassword, RANDOM_PASSWORD_COST } from '../http/passwords.ts';
import { type EmbeddedService, startEmbeddedService } from '../service/embedded.ts';
import type { Journal, Journals } from '../state/journal.ts';
import { openSqliteJournals } from '../state/sqlite/journal/journals.ts';
import { openSqliteState } from '../state/sqlite/state.ts';
import type { State } from '../state/state.ts';
import { systemClock } from '../util/clock.ts';
import { withinGrace } from '../util/grace.ts';
import type { Log } from '../util/log.ts';
import { makeFolder } from '../util/make-folder.ts';
import type { Path } from '../util/path.ts';
import { claimDrive } from './account-guard.ts';
import { createJournalKeeper, type JournaledDrive, type RunningWrites } from './journal-admin.ts';
import { createLockKeeper } from './lock-admin.ts';
import { settingsForNextStart, usersOfRunningDrives } from './next-start.ts';

/** What the block cache may take of the disk. */
const CACHE_BYTES_MAX = 10 * 1024 ** 3;

/** A running gateway. */
export interface Gateway {
  /** Where clients mount it. */
  readonly url: string;
  /** Of the one user, where the configuration says none. */
  readonly madeUpPassword: MadeUpPassword | undefined;
  /**
   * Takes the users and the certificate of `config` without ending a connection. Returns the settings that differ and
   * wait for the next start. Throws as `startGateway` does, and then nothing has changed.
   */
  reload(config: Config): Promise<readonly string[]>;
  /** Drains, within the grace time: takes no new requests, lets running ones finish, commits held files. */
  close(): Promise<void>;
}

/** What is open may use what was opened before it, and does not outlive it. */
interface Room {
  /** Lets what is under way go on until `over`. */
  close(over: AbortSignal): Promise<void>;
}

/** What has to be closed: the last opened first, or all at the same time. */
class Opened implements Room {
  readonly #rooms: Room[] = [];

  constructor(private readonly order: 'last first' | 'together' = 'last first') {}

  add<T extends Room>(room: T): T {
    this.#rooms.push(room);
    return room;
  }

  async close(over: AbortSignal): Promise<void> {
    const rooms = this.#rooms.splice(0).reverse();
    if (this.order === 'together') await Promise.all(rooms.map((room) => room.close(over)));
    else for (const room of rooms) await room.close(over);
  }
}

/** What can be measured of the gateway, as its parts come to be. */
class Gauges {
  readonly ofDrives: (() => DriveGauges)[] = [];
  ofCache = (): number => 0;
  readonly drives = (): readonly DriveGauges[] => this.ofDrives.map((read) => read());
  readonly blockCacheBytes = (): number => this.ofCache();

  /** What waits in the journals of all drives. */
  readonly health = (): Health => {
    const sum = { journalFiles: 0, journalBytes: 0, lostFiles: 0 };
    let trouble: string | undefined;
    for (const { journal } of this.drives()) {
      trouble ??= journal.trouble;
      sum.journalFiles += journal.files;
      sum.journalBytes += journal.bytes;
      sum.lostFiles += journal.lostFiles;
    }
    return { ...sum, ...(trouble !== undefined && { journalTrouble: trouble }) };
  };
}

/**
 * Starts all that `config` asks for; resolves when clients can come. Throws `ConfigError` and the rooms' own
 * typed errors for what davgate cannot start with; what was open by then is closed again.
 */
export async function startGateway(config: Config, log: Log): Promise<Gateway> {
  const opened = new Opened();
  try {
    const { users, madeUpPassword } = await loginsOf(config);
    const gauges = new Gauges();
    const metrics = createMetrics({ ...gauges, familyOf: (request) => clientOf(request).name });
    const journaled = new Map<string, JournaledDrive>();
    const { drives, embedded } = await openDrives(config, { gauges, metrics, log, opened, journaled });
    await openControl(config, drives, { journaled, log, opened });
    const openSite = embedded && linkSite(embedded.url, log);
    const listener = opened.add(await listen(config, { users, drives, gauges, metrics, log, openSite }));
    embedded?.leadLinksTo(`${publicUrlOf(config, listener)}${LINKS_PATH}`);
    return {
      url: listener.url,
      madeUpPassword,
      reload: (next) => reload(listener, config, next),
      close: () => end(opened, log),
    };
  } catch (error) {
    await end(opened, log);
    throw error;
  }
}

function end(opened: Opened, log: Log): Promise<void> {
  return withinGrace({ clock: systemClock, log }, (over) => opened.close(over));
}

/** A user whose drive does not run would see none, so such a user is left out until the next start. */
async function reload(listener: Listener, running: Config, next: Config): Promise<readonly string[]> {
  const waiting = settingsForNextStart(running, next);
  const { users } = await loginsOf({ ...next, dataDirectory: running.dataDirectory });
  listener.reload({
    ...(running.users && users && { users: usersOfRunningDrives(users, running) }),
    ...(running.tls && next.tls && { tls: next.tls }),
  });
  return waiting;
}

/** What the parts of a gateway report to. */
interface Watchers {
  readonly gauges: Gauges;
  readonly metrics: Metrics;
  readonly log: Log;
  readonly opened: Opened;
  /** The journals by drive, for `davgate journal`. */
  readonly journaled: Map<string, JournaledDrive>;
}

/** The address that links begin with, without a slash at the end. */
function publicUrlOf({ publicUrl, listen, tls }: Config, { port }: Listener): string {
  return publicUrl ?? urlFromOutside(listen.host, port, tls !== undefined);
}

/** The host names under which people reach this gateway. */
function ownNamesOf({ publicUrl, listen }: Config): readonly string[] {
  return [listen.host.toLowerCase(), ...(publicUrl === undefined ? [] : [new URL(publicUrl).hostname])];
}

interface OpenDrives {
  readonly drives: ReadonlyMap<string, Drive>;
  readonly embedded: EmbeddedService | undefined;
}

async function openDrives(config: Config, watchers: Watchers): Promise<OpenDrives> {
  const { gauges, metrics, log, opened } = watchers;
  const state = opened.add(await openState(config, log));
  const journals = await openJournals(config, { opened, log });
  const { writeMode, dataDirectory } = config;
  const directory = config.cacheDirectory;
  const sizeBytesMax = CACHE_BYTES_MAX;
  const cache = opened.add(
    await openBlockCache({ directory, sizeBytesMax, clock: systemClock, log, meter: metrics.meter }),
  );
  gauges.ofCache = () => cache.diskBytes;
  const spool = await openSpool({ directory: join(config.dataDirectory, 'spool'), clock: systemClock, log });
  const embedded = await openEmbedded(config, log, opened);
  const drives = new Map<string, Drive>();
  // Each may need the whole grace time, before a service that does not answer.
  const ends = opened.add(new Opened('together'));
  for (const drive of config.drives) {
    const service = serviceOf(drive, embedded);
    const needs = {
      ...watchers,
      opened: ends.add(new Opened()),
      service,
      state,
      journals,
      writeMode,
      dataDirectory,
      cache,
      spool,
    };
    drives.set(drive.name, await openOne(drive, needs));
  }
  return { drives, embedded };
}

/** Starts the embedded service if a drive needs it. */
async function openEmbedded(config: Config, log: Log, opened: Opened): Promise<EmbeddedService | undefined> {
  const drives = embeddedDrives(config.drives);
  if (drives.length === 0) return undefined;
  const dataDirectory = join(config.dataDirectory, 'service');
  return opened.add(await startEmbeddedService({ dataDirectory, drives, purpose: 'serve' }, log));
}

/** Where a drive's files are. */
function serviceOf({ name, service }: DriveConfig, embedded: EmbeddedService | undefined): RemoteService {
  if (service !== 'embedded') return service;
  const token = embedded?.tokens.get(name);
  if (!embedded || token === undefined) throw new Error(`the embedded service has no account for ${name}`);
  const { url } = embedded;
  return { apiUrl: url, contentUrl: url, notifyUrl: url, credentials: { token } };
}

async function openState({ redisUrl, dataDirectory }: Config, log: Log): Promise<State> {
  if (redisUrl === undefined) return openSqliteState({ directory: join(dataDirectory, 'state') });
  // Only when it is needed: the client library takes 17 MB of memory.
  const { openRedisState } = await import('../state/redis/state.ts');
  return openRedisState({ url: redisUrl, clock: systemClock, log });
}

/** `undefined`: writes are not to wait for the service, and none of an earlier run does. */
async function openJournals(
  { writeMode, dataDirectory }: Config,
  { opened, log }: Pick<Watchers, 'opened' | 'log'>,
): Promise<Journals | undefined> {
  const journal = join(dataDirectory, 'journal');
  if (writeMode === 'through' && !existsSync(journal)) return undefined;
  return opened.add(
    await openSqliteJournals({ journal, lostAndFound: join(dataDirectory, 'lost-and-found') }, log),
  );
}

/** The journal of a drive, if it has one. What an earlier run left in it is sent also where no more is to come. */
async function journalOf(
  journal: Journal | undefined,
  writeMode: Config['writeMode'],
): Promise<Pick<DriveOptions, 'journal' | 'journalLimits'>> {
  if (!journal) return {};
  if (writeMode === 'back') return { journal };
  return (await journal.all()).length > 0 ? { journal, journalLimits: { filesMax: 0 } } : {};
}

interface DriveNeeds extends Watchers {
  readonly service: RemoteService;
  readonly state: State;
  readonly journals: Journals | undefined;
  readonly writeMode: Config['writeMode'];
  readonly dataDirectory: string;
  readonly cache: BlockCache;
  readonly spool: Spool;
}

async function openOne(
  drive: DriveConfig,
  { service, state, journals, writeMode, dataDirectory, cache, spool, ...watchers }: DriveNeeds,
): Promise<Drive> {
  const { name, root, deletePolicy } = drive;
  const { gauges, metrics, log, opened, journaled } = watchers;
  const tools = { clock: systemClock, log, meter: metrics.meter };
  const login = { ...service, root };
  const kept = { state, journals, dataDirectory };
  const admit = await claimDrive({ drive: name, service: login, ...kept, clock: systemClock, log });
  const remote = opened.add(createRemote({ ...login, ...tools, admit }));
  const driveState = state.drive(name);
  const options = { ...tools, remote, state: driveState, cache, spool, deletePolicy };
  const journal = await journals?.drive(name);
  const files = await openDrive({ ...options, ...(await journalOf(journal, writeMode)) });
  if (journal) journaled.set(name, { journal, running: runningWrites(files) });
  gauges.ofDrives.push(() => ({ name, ...remote.status(), ...files.status(), journal: files.depth() }));
  return { files: opened.add(files), state: files.state };
}

/** State in Redis can be looked at beside us; that in SQLite is ours alone as long as we run. */
async function openControl(
  config: Config,
  drives: ReadonlyMap<string, Drive>,
  { journaled, log, opened }: Pick<Watchers, 'journaled' | 'log' | 'opened'>,
): Promise<void> {
  if (config.redisUrl !== undefined) return;
  const locked = [...drives].map(
    ([name, { files, state }]) => [name, { locks: state.locks, settle: settling(files, log) }] as const,
  );
  const commands = createLockKeeper(new Map(locked), systemClock);
  const journal = createJournalKeeper(journaled, systemClock);
  opened.add(await startControl({ socketPath: controlSocketIn(config), commands, journal, log }));
}

/** What `davgate journal` does with the writes of a drive while it is served. */
function runningWrites({ pending, write }: OpenDrive): RunningWrites {
  return {
    problemOf: (id) => pending?.problemOf(id),
    retry: async (id) => pending?.retry(id),
    discard: async (id) => (await pending?.discard(id)) ?? false,
    write: async (path, bytes, sizeBytes) => {
      await write(path, bytes, { mode: { if: 'absent' }, sizeBytes });
    },
  };
}

/** A held file is safe already: that the service is away now is no reason to keep it locked. */
function settling(files: Files, log: Log): (path: Path) => Promise<void> {
  return async (path) => {
    try {
      await files.commitPlaceholder(path);
    } catch (error) {
      if (!(error instanceof FileError)) throw error;
      log.warn('a held file could not be committed yet', { fault: error.fault, reason: error.message });
    }
  };
}

interface ListenNeeds {
  readonly users: readonly User[] | undefined;
  readonly drives: ReadonlyMap<string, Drive>;
  readonly gauges: Gauges;
  readonly metrics: Metrics;
  readonly log: Log;
  readonly openSite: OpenSite | undefined;
}

function listen(
  config: Config,
  { users, drives, gauges, metrics, log, openSite }: ListenNeeds,
): Promise<Listener> {
  const handle = createDavHandler({ clock: systemClock, log });
  const [sole] = drives.values();
  return startListener({
    ...config.listen,
    tls: config.tls,
    users,
    ownNames: ownNamesOf(config),
    trustedProxies: config.trustedProxies,
    crossOrigins: config.crossOrigins,
    metrics,
    health: gauges.health,
    openSite,
    log,
    handle: (exchange, { user }) => {
      const drive = user ? drives.get(user.drive) : sole;
      if (!drive) throw new Error('a user without a drive came in, which the configuration rules out');
      return handle(exchange, { principal: user?.name ?? '', drive });
    },
  });
}

interface Logins {
  /** `undefined`: everyone may come in. */
  readonly users: readonly User[] | undefined;
  readonly madeUpPassword: MadeUpPassword | undefined;
}

/** Passwords are hashed as soon as they are known. */
async function loginsOf({ users: configured, dataDirectory }: Config): Promise<Logins> {
  makeDataDirectory(dataDirectory);
  let madeUp: MadeUpPassword | undefined;
  const users: User[] = [];
  for (const { name, drive, password, passwordHash } of configured ?? []) {
    if (passwordHash) users.push({ name, drive, passwordHash });
    else if (password) users.push({ name, drive, passwordHash: await hashPassword(password) });
    else {
      madeUp = await madeUpPassword(dataDirectory);
      users.push({ name, drive, passwordHash: await hashPassword(madeUp.text, RANDOM_PASSWORD_COST) });
    }
  }
  return { users: configured && users, madeUpPassword: madeUp };
}

function makeDataDirectory(directory: string): void {
  try {
    makeFolder(directory);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException; // the file system's own errors
    throw new ConfigError(
      `cannot make the data directory ${directory} (${code}); choose another with --data-dir`,
    );
  }
}
