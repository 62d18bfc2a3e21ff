import { type Clock, momentNow } from '../util/clock.ts';
import type { Log } from '../util/log.ts';
import { type Meter, silentMeter } from '../util/meter.ts';
import { AdmittedTokens, accountOfToken, type LoginAccount } from './account-check.ts';
import { CallBudget } from './call-budget.ts';
import { CallAvailability, Caller } from './caller.ts';
import type { Client } from './context.ts';
import { type AccountCalls, accountOf } from './current-account.ts';
import { downloadsOf } from './download.ts';
import { DriveRoot } from './drive-root.ts';
import { ApiError } from './errors.ts';
import { historyOf } from './history.ts';
import { Http, type HttpTimeouts } from './http.ts';
import { listingOf } from './list-folder.ts';
import { type Namespace, PathRoot } from './path-root.ts';
import { CallQueue, type Lane, type LaneDepth } from './queue.ts';
import type { Availability, Remote } from './remote.ts';
import { searchOf } from './search.ts';
import { SharedAccess } from './shared-access.ts';
import type { SharedBudget } from './shared-budget.ts';
import type { SharedTurns } from './shared-turns.ts';
import { sharingOf } from './sharing.ts';
import { thumbnailsOf } from './thumbnails.ts';
import { type Credentials, createTokens, type TokenDeps } from './token.ts';
import { treeOf } from './tree-calls.ts';
import { Turns } from './turns.ts';
import { MAPPED_NAMES, SAME_NAMES } from './wire-names.ts';
import { type UploadLimits, writesOf } from './write/uploader.ts';

export interface RemoteOptions {
  /** Without `/2`. Access tokens come from `{apiUrl}/oauth2/token`. */
  readonly apiUrl: string;
  readonly contentUrl: string;
  readonly notifyUrl: string;
  readonly credentials: Credentials;
  /** The account's folder that is the drive's root; `''` for the whole account. */
  readonly root: string;
  /** Whether names that the service does not take are mapped to others, or are refused. Default: `mapped`. */
  readonly names?: 'mapped' | 'strict';
  /** Where paths begin; the account's home when absent. */
  readonly namespace?: Namespace | undefined;
  /** The account of the login, if it is known. */
  readonly account?: LoginAccount | undefined;
  readonly clock: Clock;
  readonly log: Log;
  readonly meter?: Meter;
  /** Returns numbers in [0, 1), which spread the retries of several clients. */
  readonly random?: () => number;
  /** What other gateways of the account share with this one; absent if there are none. */
  readonly shared?: SharedAccount | undefined;
  /** How long after its first failure a call is still retried, in ms. */
  readonly deadlineMs?: number;
  readonly timeouts?: HttpTimeouts;
  readonly uploadLimits?: Partial<UploadLimits>;
  /** The clock for time limits on answers: the system's when absent, whatever `clock` is. */
  readonly httpClock?: Clock;
  /**
   * Called once, before the first call, with the account of the login. No call is made until it resolves. When it throws
   * an `ApiError`, every call throws that.
   */
  readonly admit?: ((account: LoginAccount) => Promise<void>) | undefined;
}

/** What the gateways of an account share. */
export interface SharedAccount {
  readonly budget: SharedBudget;
  /** The turns in which they commit in the namespace, and stage short contents. */
  readonly turns: SharedTurns;
  /** Deadline of an answer, in ms; 1 s when absent. After it this gateway works alone for a while. */
  readonly answerMsMax?: number;
}

/** Default of `deadlineMs`: davfs2 and Cyberduck give up after 30 s, and must see the error before that. */
const DEADLINE_MS = 25_000;

/** Calls under way, and totals since the start. */
export interface RemoteStatus {
  readonly lanes: Readonly<Record<Lane, LaneDepth>>;
  /** Whether the service has asked for a pause. */
  readonly isPaused: boolean;
  /** Bytes of request bodies, and of answers below. */
  readonly sentBytes: number;
  readonly receivedBytes: number;
  /** How far the service's clock was ahead of ours in its last answer, in ms. */
  readonly serviceAheadMs: number;
}

export interface HttpRemote extends Remote, AccountCalls {
  status(): RemoteStatus;
  close(): Promise<void>;
}

/** A client of the service with its queue, tokens and connections, before it is a `Remote`. */
export interface Connection {
  readonly client: Client;
  readonly availability: Availability;
  status(): RemoteStatus;
  close(): Promise<void>;
}

/**
 * The storage service over HTTP. `close` aborts the calls under way: these, and all later ones, fail with `offline`.
 * Throws `PathError` for a `root` that is not a path, `ApiError` for a malformed token.
 */
export function createRemote(options: RemoteOptions): HttpRemote {
  return remoteOf(openConnection(options), options.uploadLimits);
}

/** The methods of `Remote` over a connection. */
export function remoteOf(
  { client, availability, status, close }: Connection,
  uploadLimits?: Partial<UploadLimits>,
): HttpRemote {
  return {
    availability,
    status,
    close,
    ...listingOf(client),
    ...downloadsOf(client),
    ...writesOf(client, uploadLimits),
    ...treeOf(client),
    ...searchOf(client),
    ...historyOf(client),
    ...thumbnailsOf(client),
    ...sharingOf(client),
    ...accountOf(client),
  };
}

export function openConnection(options: RemoteOptions): Connection {
  const { clock, log, meter = silentMeter, deadlineMs = DEADLINE_MS, random = Math.random } = options;
  const root = new DriveRoot(options.root, options.names === 'strict' ? SAME_NAMES : MAPPED_NAMES);
  const closing = new AbortController();
  const { signal } = closing;
  const urls = { base: options.apiUrl, content: options.contentUrl, notify: options.notifyUrl };
  const http = new Http(urls, options.timeouts, options.httpClock);
  const tokenDeps: TokenDeps = {
    send: (request, aborted) => http.send(request, aborted),
    clock,
    meter,
    signal,
  };
  const issued = createTokens(options.credentials, tokenDeps);
  const admitted = options.admit && new AdmittedTokens(issued, tokenDeps, options.admit);
  const tokens = admitted ?? issued;
  const pathRoot = isHome(options.namespace)
    ? undefined
    : new PathRoot(
        options.namespace,
        async (token, aborted) => {
          // The account that was admitted decides, also if it is moved to another root meanwhile.
          const known = options.account ?? admitted?.account;
          const account = known ?? (await accountOfToken(tokenDeps, token, aborted));
          return account === 'unreadable' ? undefined : account.rootNamespace;
        },
        log,
      );
  const { shared } = options;
  const access = new SharedAccess({ clock, log, answerMsMax: shared?.answerMsMax });
  const budget = shared && new CallBudget({ shared: shared.budget, access, clock });
  const turns = shared && new Turns({ shared: shared.turns, access, clock });
  const queue = new CallQueue({ clock, signal, patienceMs: deadlineMs, budget });
  const availability = new CallAvailability(clock);
  const needs = {
    http,
    tokens,
    queue,
    availability,
    pathRoot,
    turns,
    clock,
    log,
    meter,
    random,
    deadlineMs,
    signal,
  };
  const caller = new Caller(needs);
  return {
    client: { caller, root, clock, log, meter, turns },
    availability,
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

function isHome(namespace: Namespace | undefined): namespace is 'home' | undefined {
  return namespace === undefined || namespace === 'home';
}
