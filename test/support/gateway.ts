import { mkdtemp, rm } from 'node:fs/promises';
import { Agent, type IncomingHttpHeaders, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { setTimeout } from 'node:timers/promises';
import { createRemote, type RemoteOptions } from '../../src/api/client.ts';
import type { HttpTimeouts } from '../../src/api/http.ts';
import { userDrives, withHistoryFolders } from '../../src/app/user-drives.ts';
import { createBrowserHandler } from '../../src/browser/handler.ts';
import type { FolderGrant, Grant } from '../../src/config/grant.ts';
import { createDavHandler } from '../../src/dav/handler.ts';
import { openBlockCache } from '../../src/drive/content/block-cache.ts';
import { openDrive } from '../../src/drive/drive.ts';
import type { JournalDepth } from '../../src/drive/journal/write-back.ts';
import { openSpool } from '../../src/drive/spool/spool.ts';
import { startGatewayServer } from '../../src/http/gateway-server.ts';
import { PieceStore } from '../../src/state/pieces/piece-store.ts';
import { openSqliteJournals } from '../../src/state/sqlite/journal/journals.ts';
import { openSqliteState } from '../../src/state/sqlite/state.ts';
import { type Clock, systemClock } from '../../src/util/clock.ts';
import type { HttpRequest } from '../../src/util/http-messages.ts';
import type { Log, LogFields } from '../../src/util/log.ts';
import { ROOT } from '../../src/util/path.ts';
import type { TestService } from './service.ts';
import { unhurried } from './unhurried.ts';

export interface TestGateway {
  /** The gateway's URL, without a trailing slash. */
  readonly url: string;
  /** Errors in the gateway's log. */
  readonly errors: readonly LogFields[];
  /** Warnings in the gateway's log, such as repeated calls. */
  readonly warnings: readonly LogFields[];
  /** Folder of bodies that are waiting for the service. */
  readonly spoolDirectory: string;
  /** Resolves when the change feed is alive. Entries cached before may have to be fetched again. */
  following(): Promise<void>;
  /** Returns whether the change feed is alive. */
  isFollowing(): boolean;
  /** Returns the pending writes in the journal. */
  depth(): JournalDepth;
  /** Returns the ids of items with dead properties. */
  idsWithProperties(): Promise<readonly string[]>;
  /** Serves so many users with other rights that the drives of all users are forgotten. */
  serveOthers(): void;
  /** Resolves when the journal is empty. */
  landed(): Promise<void>;
  close(): Promise<void>;
}

/** A folder of the gateway's drive, and where a user sees it. */
export interface TestMount {
  readonly at: string;
  readonly root: string;
  readonly isReadOnly?: boolean;
  readonly quotaBytes?: number;
  readonly folders?: readonly FolderGrant[];
}

export interface GatewayOptions {
  readonly service: Pick<TestService, 'url' | 'appKey' | 'appSecret' | 'refreshToken'>;
  /** How long failed calls are repeated, in ms. The default is longer than a test. */
  readonly deadlineMs?: number;
  /** The folder of the account that is the drive's root, as in `--root`. The default is the whole account. */
  readonly root?: string;
  /** What happens to names that the service does not take, as in `--names`. */
  readonly names?: RemoteOptions['names'];
  /** How long an empty file waits for its body, in ms. */
  readonly holdMs?: number;
  /** Random numbers for the waits between two tries. */
  readonly random?: () => number;
  /** What it shares with other gateways of the account. */
  readonly shared?: RemoteOptions['shared'];
  /** Clock of the gateway. Its connections use the system clock, with time-outs longer than a test. */
  readonly clock?: Clock;
  /** Whether writes are acknowledged when they are in the journal. */
  readonly writeBack?: boolean;
  /**
   * How long cached entries are valid while the change feed is down, in ms. The default is that of a real
   * gateway.
   */
  readonly staleMs?: number;
  /** Time-outs of connections. The default is longer than a test. */
  readonly timeouts?: HttpTimeouts;
  /** The files that have checksums, as in `--checksums`. */
  readonly checksums?: 'given' | 'all';
  /** Whether the user may only read. */
  readonly isReadOnly?: boolean;
  /** Whether WebDAV shows former versions and deleted files, as with `--history-folders`. */
  readonly hasHistoryFolders?: boolean;
  /**
   * The users who see something else than the whole drive, by the name in the header `x-test-user`. The drive of each mount
   * is that of the gateway.
   */
  readonly views?: Readonly<Record<string, readonly TestMount[]>>;
  /** Directory of the gateway's state, which is kept when it closes. The default is a temporary directory. */
  readonly directory?: string;
}

/** Time-out that no test reaches, in ms. A minute of a manual clock may take any real time on a busy machine. */
export const TEST_MS = 10 * 60_000;
/** Interval between two polls, in ms. */
const POLL_MS = 5;
const PATIENT: HttpTimeouts = {
  connectMs: TEST_MS,
  answerMs: TEST_MS,
  firstAnswerMs: TEST_MS,
  slowAnswerMs: TEST_MS,
  silenceMs: TEST_MS,
};

/** Starts a gateway in this process over a running service, composed as in `src/app/`, without authentication. */
export async function startTestGateway(options: GatewayOptions): Promise<TestGateway> {
  const { url, appKey, appSecret, refreshToken } = options.service;
  const { random, holdMs, staleMs, clock = systemClock, writeBack = false, timeouts = PATIENT } = options;
  const deadlineMs = options.deadlineMs ?? (options.clock ? undefined : TEST_MS);
  const directory = options.directory ?? (await mkdtemp(join(tmpdir(), 'davgate-gateway-')));
  const errors: LogFields[] = [];
  const warnings: LogFields[] = [];
  const warn = (event: string, fields?: LogFields) => void warnings.push({ event, ...fields });
  const log: Log = { info() {}, warn, error: (event, fields) => errors.push({ event, ...fields }) };
  const stateStore = openSqliteState({ directory: join(directory, 'state') });
  const cache = await openBlockCache({
    directory: join(directory, 'cache'),
    sizeBytesMax: 2 ** 28,
    clock,
    log,
  });
  const remote = createRemote({
    apiUrl: url,
    contentUrl: url,
    notifyUrl: url,
    credentials: { appKey, appSecret, refreshToken },
    root: options.root ?? '',
    ...(options.names && { names: options.names }),
    clock,
    log,
    ...(deadlineMs !== undefined && { deadlineMs }),
    ...(random && { random }),
    shared: options.shared,
    timeouts,
  });
  const spool = await openSpool({ directory: join(directory, 'spool'), clock, log });
  const places = { journal: join(directory, 'journal'), lostAndFound: join(directory, 'lost-and-found') };
  const journals = writeBack ? await openSqliteJournals(places, log) : undefined;
  const drive = { remote, state: stateStore.drive('d'), cache, clock, log, deletePolicy: 'auto' } as const;
  const files = await openDrive({
    ...drive,
    spool,
    ...(holdMs !== undefined && { holdMs }),
    ...(staleMs !== undefined && { staleMs }),
    ...(journals && { journal: await journals.drive('d') }),
  });
  const { hasHistoryFolders = false } = options;
  const plain = {
    ...{
      name: 'd',
      rights: 'all',
      files,
      history: files.history,
      state: files.state,
      changes: files.changes,
      changeLog: files.changeLog,
      catchUp: files.catchUp,
    },
    places: [{ path: ROOT, isReadOnly: options.isReadOnly ?? false, keepsDeleted: true }],
    ...(options.isReadOnly && { isReadOnly: () => true }),
    unfollow: () => {},
  };
  const access = {
    user: undefined,
    drive: hasHistoryFolders ? withHistoryFolders(plain, clock) : { ...plain, webdav: plain },
  };
  const shared = new Map([['d', { ...plain, isReadOnly: false, keepsDeleted: true }]]);
  const driveOf = userDrives(shared, { clock, hasHistoryFolders });
  const views = new Map(
    Object.entries(options.views ?? {}).map(([name, mounts]) => [
      name,
      { name, grants: mounts.map(grantOf) },
    ]),
  );
  const accessOf = ({ headers }: HttpRequest) => {
    const user = views.get(String(headers['x-test-user']));
    return user ? { user: { name: user.name }, drive: driveOf(user) } : access;
  };
  const handleApi = createBrowserHandler({ clock, log });
  const pieces = await PieceStore.open({ directory: join(directory, 'uploads'), clock, log });
  const handleDav = createDavHandler({ clock, log, pieces, checksums: options.checksums });
  const listener = await startGatewayServer({
    host: '127.0.0.1',
    port: 0,
    users: undefined,
    driveOf: () => undefined,
    log,
    ownRoute: (exchange, _, closing) => handleApi(exchange, accessOf(exchange.request), closing),
    handle: (exchange) => {
      const { user, drive: shown } = accessOf(exchange.request);
      return handleDav(exchange, { user, drive: shown.webdav });
    },
  });
  return {
    url: `http://127.0.0.1:${listener.port}`,
    errors,
    warnings,
    spoolDirectory: join(directory, 'spool'),
    async following() {
      while (!files.status().isFeedAlive) await setTimeout(POLL_MS);
    },
    isFollowing: () => files.status().isFeedAlive,
    depth: () => files.depth(),
    idsWithProperties: () => drive.state.properties.ids(),
    serveOthers() {
      for (let count = 0; count < 2_000; count++)
        driveOf({ name: `${count}`, grants: [{ drive: 'd', root: `/${count}` }] });
    },
    async landed() {
      while (files.depth().files > 0) await setTimeout(POLL_MS);
    },
    async close() {
      await listener.close(unhurried());
      await pieces.close();
      await files.close(unhurried());
      await remote.close();
      await cache.close();
      await journals?.close();
      await stateStore.close();
      if (options.directory === undefined) await rm(directory, { recursive: true, force: true });
    },
  };
}

function grantOf({ at, ...mount }: TestMount): Grant {
  return { ...mount, drive: 'd', ...(at !== '/' && { folder: at.slice(1) }) };
}

export interface GatewayAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

export interface GatewayRequest {
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array;
  /** Disconnects after this many bytes of the body. */
  readonly leaveAfterBytes?: number;
}

/** A client with its own connections. */
export class GatewayClient {
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 4 });

  constructor(private readonly url: string) {}

  /** Sends a request. Rejects when the connection breaks before the end of the answer. */
  async send(
    method: string,
    path: string,
    { headers, body, leaveAfterBytes }: GatewayRequest = {},
  ): Promise<GatewayAnswer> {
    return new Promise((resolve, reject) => {
      const outgoing = request(`${this.url}${encodeURI(path)}`, {
        method,
        agent: this.#agent,
        headers: { ...headers, ...(body && { 'content-length': body.length }) },
      });
      outgoing.once('error', reject);
      outgoing.once('response', (response) => {
        const { statusCode: status = 0, headers: answered } = response;
        buffer(response).then((content) => resolve({ status, headers: answered, body: content }), reject);
      });
      if (leaveAfterBytes === undefined || !body) outgoing.end(body);
      else outgoing.write(body.subarray(0, leaveAfterBytes), () => outgoing.destroy(new Error('left')));
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}
