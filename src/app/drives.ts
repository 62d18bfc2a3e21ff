import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { LoginAccount } from '../api/account-check.ts';
import { createRemote, type RemoteOptions } from '../api/client.ts';
import type { Config } from '../config/configuration.ts';
import { type DriveConfig, embeddedDrives, type RemoteService } from '../config/drive-config.ts';
import { type BlockCache, openBlockCache } from '../drive/content/block-cache.ts';
import { type DriveOptions, type OpenDrive, openDrive } from '../drive/drive.ts';
import { openSpool, type Spool } from '../drive/spool/spool.ts';
import type { DriveGauges } from '../http/metrics.ts';
import { type EmbeddedService, loadServiceThread, type ServiceThread } from '../service/embedded.ts';
import type { AppPasswordStore } from '../state/app-passwords.ts';
import type { Journal, Journals } from '../state/journal.ts';
import { PieceStore } from '../state/pieces/piece-store.ts';
import { openSqliteJournals } from '../state/sqlite/journal/journals.ts';
import { openSqliteState } from '../state/sqlite/state.ts';
import type { State } from '../state/state.ts';
import type { UploadLinkStore } from '../state/upload-links.ts';
import { systemClock } from '../util/clock.ts';
import { BLOCK_BYTES } from '../util/content-hash.ts';
import type { Log } from '../util/log.ts';
import { memoryBytes } from '../util/memory.ts';
import type { Meter } from '../util/meter.ts';
import { claimDrive } from './account-guard.ts';
import { gatewayIdIn } from './gateway-id.ts';
import { type MemoryShares, memoryShares } from './memory-shares.ts';
import { OpenResources } from './open-resources.ts';

/** Maximum size of the block cache on the disk, in bytes. */
const CACHE_BYTES_MAX = 10 * 1024 ** 3;

/** Maximum number of parts of one upload on their way to the embedded service, which has no latency to hide. */
const EMBEDDED_PARTS_MAX = 3;

/** A drive that is served. */
export interface ServedDrive {
  readonly files: OpenDrive;
  /** `undefined` if its writes never wait for the service. */
  readonly journal: Journal | undefined;
  readonly gauges: () => DriveGauges;
}

/** All drives of a gateway by name, and the parts that they share. */
export interface ServedDrives {
  readonly drives: ReadonlyMap<string, ServedDrive>;
  /** `undefined` if no drive is kept in it. */
  readonly embedded: EmbeddedService | undefined;
  readonly blockCacheBytes: () => number;
  readonly memory: MemoryShares;
  readonly appPasswords: AppPasswordStore;
  readonly uploadLinks: UploadLinkStore;
  /** Returns the reason why the state cannot be reached now. */
  readonly stateTrouble: () => string | undefined;
  /** The pieces of large files, which several requests send. */
  readonly pieces: PieceStore;
}

interface DrivesDeps {
  readonly log: Log;
  readonly meter: Meter;
  readonly opened: OpenResources;
  /** The thread of the embedded service, if it is being loaded already. */
  readonly thread: ServiceThread | undefined;
}

/** Opens the drives of `config`, and adds everything that has to be closed to `opened`. */
export async function openDrives(config: Config, deps: DrivesDeps): Promise<ServedDrives> {
  const { log, meter, opened } = deps;
  const { dataDirectory, writeMode, coherence } = config;
  const state = opened.add(await openState(config, log));
  const journals = await openJournals(config, { opened, log });
  const cache = opened.add(
    await openBlockCache({
      directory: config.cacheDirectory,
      sizeBytesMax: CACHE_BYTES_MAX,
      clock: systemClock,
      log,
      meter,
    }),
  );
  const spool = await openSpool({ directory: join(dataDirectory, 'spool'), clock: systemClock, log });
  const pieces = opened.add(
    await PieceStore.open({ directory: join(dataDirectory, 'uploads'), clock: systemClock, log }),
  );
  const embedded = await openEmbedded(config, deps);
  const memory = memoryShares(memoryBytes(), config.drives.length);
  const shared = { state, journals, writeMode, coherence, dataDirectory, cache, spool, memory, meter, log };
  const drives = new Map<string, ServedDrive>();
  // In parallel, because each may need the whole grace period while the service does not answer.
  const closing = opened.add(new OpenResources('parallel'));
  for (const drive of config.drives) {
    const service = serviceOf(drive, embedded);
    drives.set(drive.name, await openOne(drive, service, shared, closing.add(new OpenResources())));
  }
  const { appPasswords, uploadLinks } = state;
  const blockCacheBytes = () => cache.diskBytes;
  const stateTrouble = () => state.trouble();
  return { drives, embedded, blockCacheBytes, memory, appPasswords, uploadLinks, stateTrouble, pieces };
}

/** Resources that all drives share. */
interface Shared {
  readonly state: State;
  readonly journals: Journals | undefined;
  readonly writeMode: Config['writeMode'];
  readonly coherence: Config['coherence'];
  readonly dataDirectory: string;
  readonly cache: BlockCache;
  readonly spool: Spool;
  readonly memory: MemoryShares;
  readonly meter: Meter;
  readonly log: Log;
}

async function openOne(
  { name, namespace, root, names, deletePolicy, localFiles, service: place }: DriveConfig,
  service: RemoteService,
  { state, journals, writeMode, coherence, dataDirectory, cache, spool, memory, meter, log }: Shared,
  opened: OpenResources,
): Promise<ServedDrive> {
  const login = { ...service, namespace, root, ...(names && { names }) };
  const deps = { clock: systemClock, log, meter };
  const kept = { state, journals, dataDirectory };
  const admission = await claimDrive({ drive: name, service: login, ...kept, clock: systemClock, log });
  const uploadLimits =
    place === 'embedded'
      ? { ...memory.uploads, partBytes: BLOCK_BYTES, inFlightMax: EMBEDDED_PARTS_MAX }
      : memory.uploads;
  const shared = await sharedOf(state, { name, namespace }, admission.account);
  const remote = opened.add(createRemote({ ...login, ...deps, ...admission, uploadLimits, shared }));
  const journal = await journals?.drive(name);
  const files = opened.add(
    await openDrive({
      ...deps,
      remote,
      state: state.drive(name),
      cache,
      spool,
      deletePolicy,
      ...(localFiles && { localFilesPolicy: localFiles }),
      metadataBytesMax: memory.metadataBytesMax,
      ...(coherence !== undefined && { coherence }),
      ...(await journalOptions(journal, writeMode)),
    }),
  );
  const gauges = () => ({ name, ...remote.status(), ...files.status(), journal: files.depth() });
  return { files, journal, gauges };
}

/** Returns what gateways share of a drive's account; `undefined` if only this one uses the state. */
async function sharedOf(
  state: State,
  { name, namespace = 'home' }: Pick<DriveConfig, 'name' | 'namespace'>,
  account: LoginAccount | undefined,
): Promise<RemoteOptions['shared']> {
  if (!state.budget || !state.commitTurns) return undefined;
  const isKnown = account !== undefined && account !== 'unreadable';
  // The drive's gateways at least have its name in common when its account is not known.
  const id = isKnown ? account.id : ((await state.owners.get(name))?.accountId ?? name);
  return { budget: state.budget(id), turns: state.commitTurns(`${id} ${namespace}`) };
}

/** Starts the embedded service if a drive needs it. */
async function openEmbedded(
  { drives, dataDirectory }: Config,
  { log, opened, thread }: Omit<DrivesDeps, 'meter'>,
): Promise<EmbeddedService | undefined> {
  const embedded = embeddedDrives(drives);
  if (embedded.length === 0) return undefined;
  const options = {
    dataDirectory: join(dataDirectory, 'service'),
    drives: embedded,
    purpose: 'serve',
  } as const;
  return opened.add(await (thread ?? loadServiceThread()).start(options, log));
}

/** Returns the service and login that hold the files of a drive. */
function serviceOf({ name, service }: DriveConfig, embedded: EmbeddedService | undefined): RemoteService {
  if (service !== 'embedded') return service;
  const token = embedded?.tokens.get(name);
  if (!embedded || token === undefined) throw new Error(`the embedded service has no account for ${name}`);
  const { url } = embedded;
  return { apiUrl: url, contentUrl: url, notifyUrl: url, credentials: { token } };
}

async function openState(
  { redisUrl, isRedisVolatile = false, dataDirectory }: Config,
  log: Log,
): Promise<State> {
  if (redisUrl === undefined) return openSqliteState({ directory: join(dataDirectory, 'state') });
  // Loaded only when it is used: the client library takes 17 MB of memory.
  const { openRedisState } = await import('../state/redis/state.ts');
  const gateway = await gatewayIdIn(dataDirectory);
  return openRedisState({ url: redisUrl, gateway, isVolatile: isRedisVolatile, clock: systemClock, log });
}

/** Opens the journals if writes may wait for the service, or if an earlier run left some. */
async function openJournals(
  { writeMode, dataDirectory }: Config,
  { opened, log }: Pick<DrivesDeps, 'opened' | 'log'>,
): Promise<Journals | undefined> {
  const journal = join(dataDirectory, 'journal');
  if (writeMode === 'through' && !existsSync(journal)) return undefined;
  return opened.add(
    await openSqliteJournals({ journal, lostAndFound: join(dataDirectory, 'lost-and-found') }, log),
  );
}

/** Returns a drive's journal, with no room for new writes if it only holds those of an earlier run. */
async function journalOptions(
  journal: Journal | undefined,
  writeMode: Config['writeMode'],
): Promise<Pick<DriveOptions, 'journal' | 'journalLimits'>> {
  if (!journal) return {};
  if (writeMode === 'back') return { journal };
  return (await journal.all()).length > 0 ? { journal, journalLimits: { filesMax: 0 } } : {};
}
