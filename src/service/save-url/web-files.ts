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

/** Maximum duration of a fetch, in ms, as at the real service. */
const TOTAL_MS_MAX = 15 * 60 * 1000;
/** Maximum time to resolve a host, connect to it and get the beginning of its answer, in ms. */
const ANSWER_MS_MAX = 30_000;
/** Maximum pause within an answer, in ms. */
const SILENCE_MS_MAX = 60_000;
/** Maximum number of redirects. */
const REDIRECTS_MAX = 10;
const REDIRECTS: ReadonlySet<number | undefined> = new Set([301, 302, 303, 307, 308]);

/** An address of a host, as returned by `dns.lookup`. */
export interface HostAddress {
  readonly address: string;
  readonly family: number;
}

export interface WebFilesOptions {
  /** Networks that may be reached although they are not public; none by default. */
  readonly allowedNetworks?: Networks;
  /** Resolves a host; the system's resolver by default. */
  readonly resolve?: (host: string) => Promise<readonly HostAddress[]>;
}

/** A file on the web. */
export interface WebFile {
  /** The announced size; `undefined` without one. */
  readonly sizeBytes: number | undefined;
  /** Throws `DownloadFailed` unless all bytes arrive. */
  readonly bytes: AsyncIterable<Uint8Array>;
  /** Aborted with `DownloadFailed` at the maximum duration, which includes storing the file. */
  readonly until: AbortSignal;
}

/** A URL cannot be fetched. The message is for the log only, because the caller could map a private network with it. */
export class DownloadFailed extends Error {
  override readonly name = 'DownloadFailed';
}

/** Parses a client's URL; `undefined` for anything but an absolute `http:` or `https:` URL. */
export function webUrl(text: string): URL | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  return url && /^https?:$/.test(url.protocol) ? url : undefined;
}

/**
 * Fetches files from the web on behalf of users, who must not reach through it what only this machine can reach. Every
 * host, also that of a redirect, is resolved once and its addresses are checked; the connection goes to one that
 * passed, whatever the name resolves to later (DNS rebinding).
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

  /** Passes the file at `url` to `take`, until `closing`. Throws `DownloadFailed`, and what `take` throws. */
  async fetch<T>(url: URL, closing: AbortSignal, take: (file: WebFile) => Promise<T>): Promise<T> {
    const over = new AbortController();
    const { signal, release } = linkedSignal(closing, over.signal);
    this.clock.sleep(TOTAL_MS_MAX, signal).then(
      () => over.abort(new DownloadFailed(`it took longer than ${TOTAL_MS_MAX} ms`)),
      () => undefined,
    );
    try {
      return await take({ ...(await this.#open(url, signal)), until: over.signal });
    } catch (error) {
      if (error instanceof DownloadFailed)
        this.log.info('save_url could not fetch a file', { host: url.host, reason: error.message });
      throw error;
    } finally {
      // Also closes a connection that was not read to its end.
      over.abort();
      release();
    }
  }

  async #open(start: URL, signal: AbortSignal): Promise<Omit<WebFile, 'until'>> {
    let url = start;
    for (let redirects = 0; redirects <= REDIRECTS_MAX; redirects++) {
      const answer = await this.#inTime(ANSWER_MS_MAX, this.#ask(url, signal));
      if (!REDIRECTS.has(answer.statusCode)) return this.#file(answer, signal);
      answer.destroy();
      url = redirectTarget(answer, url);
    }
    throw new DownloadFailed(`it was redirected more than ${REDIRECTS_MAX} times`);
  }

  /** Sends one request; rejects only with `DownloadFailed`. */
  async #ask(url: URL, signal: AbortSignal): Promise<IncomingMessage> {
    const addresses = await this.#addressesOf(url, signal);
    return await new Promise((resolve, reject) => {
      const request = url.protocol === 'https:' ? requestTls : requestPlain;
      const asked = request(url, {
        // A new connection: a pooled one could lead to an address that was checked for another request.
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

  /** Returns the addresses of a URL's host that may be connected to. */
  async #addressesOf({ hostname }: URL, signal: AbortSignal): Promise<readonly HostAddress[]> {
    const host = hostname.replace(/^\[(.*)\]$/, '$1');
    const family = isIP(host);
    // Node calls no `lookup` for a host that is an IP address.
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
    if (encoding !== 'identity')
      throw new DownloadFailed('its host sent a content encoding that was not requested');
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
      const next = await this.#inTime(SILENCE_MS_MAX, read());
      if (next.done) break;
      yield next.value;
    }
    if (!answer.complete) throw new DownloadFailed('the connection ended before the last byte');
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

/** Returns a `lookup` that resolves every host to these addresses. */
function lookupIn(addresses: readonly HostAddress[]): LookupFunction {
  return (_host, { all }, callback) => {
    const [first] = addresses;
    if (all) callback(null, [...addresses]);
    else callback(null, first?.address ?? '', first?.family);
  };
}

function redirectTarget({ headers: { location = '' } }: IncomingMessage, from: URL): URL {
  const target = URL.canParse(location, from.href) ? webUrl(new URL(location, from).href) : undefined;
  if (!target) throw new DownloadFailed('it was redirected to a URL that is neither http nor https');
  return target;
}

/** Returns why a request failed. An abort's reason is in `signal`; the socket only says that it was closed. */
function failureOf(error: unknown, signal: AbortSignal): DownloadFailed {
  const cause = signal.aborted ? signal.reason : error;
  return cause instanceof DownloadFailed ? cause : new DownloadFailed(String(cause), { cause });
}
