import { lookup as systemLookup } from 'node:dns/promises';
import { type IncomingMessage, request as requestPlain } from 'node:http';
import { request as requestTls } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import { linkedSignal } from '../../util/abort.ts';
import type { Clock } from '../../util/clock.ts';
import type { Log } from '../../util/log.ts';
import { Networks } from '../../util/networks.ts';
import { waitAtMost } from '../../util/wait.ts';
import { isPublicAddress } from './public-address.ts';

/** How long all of it may take, in ms: as at the real service. */
const TOTAL_MAX_MS = 15 * 60 * 1000;
/** How long a host may take to be found, connected to and to begin its answer, in ms. */
const ANSWER_MAX_MS = 30_000;
/** How long a host may send nothing in the middle of its answer, in ms. */
const SILENCE_MAX_MS = 60_000;
/** Redirects that are followed. */
const REDIRECTS_MAX = 10;
const REDIRECTS: ReadonlySet<number | undefined> = new Set([301, 302, 303, 307, 308]);

/** An address of a host, as `dns.lookup` gives it. */
export interface HostAddress {
  readonly address: string;
  readonly family: number;
}

export interface WebFilesOptions {
  /** Networks that may be reached although they are not public; none if left out. */
  readonly allowedNetworks?: Networks;
  /** A host's addresses; the system's resolver if left out. */
  readonly resolve?: (host: string) => Promise<readonly HostAddress[]>;
}

/** The bytes at a URL. */
export interface WebFile {
  /** As the host says; `undefined` when it does not. */
  readonly sizeBytes: number | undefined;
  /** Throws `DownloadFailed` unless all of them come. */
  readonly bytes: AsyncIterable<Uint8Array>;
  /** Aborted with `DownloadFailed` when the time for all of it is over; storing the file counts. */
  readonly until: AbortSignal;
}

/** Nothing usable is at a URL. The message is for the log: the caller could map a private network by it. */
export class DownloadFailed extends Error {
  override readonly name = 'DownloadFailed';
}

/** A URL as a client gave it; `undefined` for anything but an absolute `http:` or `https:` address. */
export function webUrl(text: string): URL | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  return url && /^https?:$/.test(url.protocol) ? url : undefined;
}

/**
 * Fetches files from the web on behalf of users. A user must not reach through it what only this machine reaches:
 * every host, also one that a redirect names, is resolved once, its addresses are checked, and the connection goes to
 * one of those that passed, whatever the name resolves to by then.
 */
export class WebFiles {
  readonly #allowedNetworks: Networks;
  readonly #resolve: (host: string) => Promise<readonly HostAddress[]>;

  constructor(
    private readonly clock: Clock,
    private readonly log: Log,
    { allowedNetworks = new Networks(), resolve = resolveBySystem }: WebFilesOptions = {},
  ) {
    this.#allowedNetworks = allowedNetworks;
    this.#resolve = resolve;
  }

  /** Hands the file at `url` to `take`, until `closing`. Throws `DownloadFailed`, and what `take` throws. */
  async fetch<T>(url: URL, closing: AbortSignal, take: (file: WebFile) => Promise<T>): Promise<T> {
    const over = new AbortController();
    const { signal, release } = linkedSignal(closing, over.signal);
    this.clock.sleep(TOTAL_MAX_MS, signal).then(
      () => over.abort(new DownloadFailed(`it took longer than ${TOTAL_MAX_MS} ms`)),
      () => undefined,
    );
    try {
      return await take({ ...(await this.#open(url, signal)), until: over.signal });
    } catch (error) {
      if (error instanceof DownloadFailed)
        this.log.info('save_url could not fetch a file', { host: url.host, reason: error.message });
      throw error;
    } finally {
      // Also closes a connection that nobody has read to its end.
      over.abort();
      release();
    }
  }

  async #open(start: URL, signal: AbortSignal): Promise<Omit<WebFile, 'until'>> {
    let url = start;
    for (let redirects = 0; redirects <= REDIRECTS_MAX; redirects++) {
      const answer = await this.#inTime(ANSWER_MAX_MS, this.#ask(url, signal));
      if (!REDIRECTS.has(answer.statusCode)) return this.#file(answer, signal);
      answer.destroy();
      url = redirectTarget(answer, url);
    }
    throw new DownloadFailed(`it was redirected more than ${REDIRECTS_MAX} times`);
  }

  /** Asks one host; rejects with `DownloadFailed` alone. */
  async #ask(url: URL, signal: AbortSignal): Promise<IncomingMessage> {
    const addresses = await this.#addressesOf(url, signal);
    return await new Promise((resolve, reject) => {
      const request = url.protocol === 'https:' ? requestTls : requestPlain;
      const asked = request(url, {
        // Its own connection: one that is kept could lead to an address that was checked for another request.
        agent: false,
        headers: { accept: '*/*', 'accept-encoding': 'identity' },
        lookup: lookupIn(addresses),
        signal,
      });
      asked.on('response', resolve);
      asked.on('error', (error) => reject(failureOf(error, signal)));
      asked.end();
    });
  }

  /** The addresses of a URL's host that may be connected to. */
  async #addressesOf({ hostname }: URL, signal: AbortSignal): Promise<readonly HostAddress[]> {
    const host = hostname.replace(/^\[(.*)\]$/, '$1');
    const family = isIP(host);
    // Node asks no `lookup` for a host that is an address already.
    const found = family ? [{ address: host, family }] : await this.#found(host, signal);
    const allowed = found.filter(
      ({ address }) => isPublicAddress(address) || this.#allowedNetworks.has(address),
    );
    if (allowed.length === 0) throw new DownloadFailed('its host has no public address');
    return allowed;
  }

  async #found(host: string, signal: AbortSignal): Promise<readonly HostAddress[]> {
    try {
      return await this.#resolve(host);
    } catch (error) {
      throw failureOf(error, signal);
    }
  }

  #file(answer: IncomingMessage, signal: AbortSignal): Omit<WebFile, 'until'> {
    const { statusCode, headers } = answer;
    if (statusCode !== 200) throw new DownloadFailed(`its host answered ${statusCode}`);
    const encoding = headers['content-encoding'] ?? 'identity';
    if (encoding !== 'identity') throw new DownloadFailed('its host sent an encoding that was not asked for');
    const length = headers['content-length'];
    const sizeBytes = length === undefined ? undefined : Number(length);
    return { sizeBytes, bytes: this.#bytesOf(answer, signal) };
  }

  async *#bytesOf(answer: IncomingMessage, signal: AbortSignal): AsyncGenerator<Uint8Array, void, undefined> {
    const chunks: AsyncIterator<Uint8Array> = answer[Symbol.asyncIterator]();
    const read = () =>
      chunks.next().catch((error: unknown) => {
        throw failureOf(error, signal);
      });
    for (;;) {
      const next = await this.#inTime(SILENCE_MAX_MS, read());
      if (next.done) break;
      yield next.value;
    }
    if (!answer.complete) throw new DownloadFailed('the connection ended before its bytes');
  }

  #inTime<T>(ms: number, work: Promise<T>): Promise<T> {
    return waitAtMost(this.clock, ms, work, () => {
      throw new DownloadFailed(`its host was silent for ${ms} ms`);
    });
  }
}

function resolveBySystem(host: string): Promise<readonly HostAddress[]> {
  return systemLookup(host, { all: true });
}

/** Answers a connection that is about to be opened with these addresses, and asks nobody. */
function lookupIn(addresses: readonly HostAddress[]): LookupFunction {
  return (_host, { all }, callback) => {
    const [first] = addresses;
    if (all) callback(null, [...addresses]);
    else callback(null, first?.address ?? '', first?.family);
  };
}

function redirectTarget({ headers: { location = '' } }: IncomingMessage, from: URL): URL {
  const target = URL.canParse(location, from.href) ? webUrl(new URL(location, from).href) : undefined;
  if (!target) throw new DownloadFailed('it was redirected to something that is no web address');
  return target;
}

/** Why a request under `signal` failed: an abort has its reason there, and a socket tells only that it was closed. */
function failureOf(error: unknown, signal: AbortSignal): DownloadFailed {
  const cause = signal.aborted ? signal.reason : error;
  return cause instanceof DownloadFailed ? cause : new DownloadFailed(String(cause), { cause });
}
