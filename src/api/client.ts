import { type Clock, momentNow } from '../util/clock.ts';
import type { Log } from '../util/log.ts';
import { type Meter, silentMeter } from '../util/meter.ts';
import { AdmittedTokens, type Told } from './account-check.ts';
import { CallAvailability } from './availability.ts';
import { Caller } from './caller.ts';
import type { Client } from './context.ts';
import { type AccountCalls, accountOf } from './current-account.ts';
import { downloadsOf } from './download.ts';
import { DriveRoot } from './drive-root.ts';
import { ApiError } from './errors.ts';
import { Http, type HttpTimeouts } from './http.ts';
import { listingOf } from './list-folder.ts';
import { CallQueue, type Lane, type LaneDepth } from './queue.ts';
import type { Remote } from './remote.ts';
import { sharingOf } from './sharing.ts';
import { type Credentials, createTokens, type TokenWorld } from './token.ts';
import { treeOf } from './tree-calls.ts';
import { sessionsOf } from './write/sessions.ts';
import { uploadsOf } from './write/single-upload.ts';

export interface RemoteOptions {
  /** Without `/2`; access tokens are asked for at `{apiUrl}/oauth2/token`. */
  readonly apiUrl: string;
  readonly contentUrl: string;
  readonly notifyUrl: string;
  readonly credentials: Credentials;
  /** The account's folder that is the drive's root; `''` for the whole account. */
  readonly root: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly meter?: Meter;
  /** In [0, 1); chance spreads the retries of several clients. */
  readonly random?: () => number;
  /** How long after its first failure a call is still tried again. */
  readonly deadlineMs?: number;
  readonly timeouts?: HttpTimeouts;
  /** By which answers are late; without it the machine's, whatever `clock` is: connections are real. */
  readonly httpClock?: Clock;
  /**
   * Hears once, before the first call of all, whose the login is. While it has not resolved no call is made; throws
   * `ApiError`, which is then what every call throws.
   */
  readonly admit?: ((told: Told) => Promise<void>) | undefined;
}

/** davfs2 and Cyberduck give up after 30 s, so they have to hear of trouble before. */
const DEADLINE_MS = 25_000;

/** What goes on between gateway and service, at this moment and since the start. */
export interface RemoteStatus {
  readonly lanes: Readonly<Record<Lane, LaneDepth>>;
  /** Whether the service has asked for a pause. */
  readonly isPaused: boolean;
  /** Bytes of bodies. */
  readonly sentBytes: number;
  readonly receivedBytes: number;
  /** How far the service's clock was ahead of ours in its last answer. */
  readonly serviceAheadMs: number;
}

export interface HttpRemote extends Remote, AccountCalls {
  status(): RemoteStatus;
  close(): Promise<void>;
}

/**
 * The storage service over HTTP. `close` cuts what is under way: those calls, and all later ones, fail
 * with `offline`. Throws `PathError` for a `root` that is no path, `ApiError` for a token that cannot be one.
 */
export function createRemote(options: RemoteOptions): HttpRemote {
  const { clock, log, meter = silentMeter, deadlineMs = DEADLINE_MS, random = Math.random } = options;
  const root = new DriveRoot(options.root);
  const closing = new AbortController();
  const { signal } = closing;
  const urls = { base: options.apiUrl, content: options.contentUrl, notify: options.notifyUrl };
  const http = new Http(urls, options.timeouts, options.httpClock);
  const world: TokenWorld = { send: (request, aborted) => http.send(request, aborted), clock, meter, signal };
  const issued = createTokens(options.credentials, world);
  const tokens = options.admit ? new AdmittedTokens(issued, world, options.admit) : issued;
  const queue = new CallQueue({ clock, signal, patienceMs: deadlineMs });
  const availability = new CallAvailability(clock);
  const needs = { http, tokens, queue, availability, clock, log, meter, random, deadlineMs, signal };
  const caller = new Caller(needs);
  const client: Client = { caller, root, clock, log, meter };
  return {
    availability,
    ...listingOf(client),
    ...downloadsOf(client),
    ...uploadsOf(client),
    ...sessionsOf(client),
    ...treeOf(client),
    ...sharingOf(client),
    ...accountOf(client),
    status: () => ({
      lanes: queue.depths(),
      isPaused: queue.paused,
      ...http.traffic,
      serviceAheadMs: caller.serviceTime(momentNow(clock)) - clock.now(),
    }),
    async close() {
      closing.abort(new ApiError('offline', 'the connection to the storage service was closed'));
      await http.close();
    },
  };
}
