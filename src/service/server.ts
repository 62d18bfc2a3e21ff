import type { Answer, Exchange } from '../http/exchange.ts';
import type { ListenerLimits } from '../http/limits.ts';
import type { CertificateFiles } from '../http/node-server.ts';
import { withinGrace } from '../util/grace.ts';
import type { Networks } from '../util/networks.ts';
import { type Account, inRoot, type NewAccount } from './accounts/accounts.ts';
import { type DrivePurpose, type EmbeddedDrive, provisionDrives } from './accounts/drive-accounts.ts';
import { homesIn, homesOfDrives, teamFoldersIn, teamHomesIn } from './accounts/homes.ts';
import { addAccount, type Credentials, provision } from './accounts/provision.ts';
import type { Scope } from './accounts/scopes.ts';
import type { Host } from './api/dispatch.ts';
import type { ServiceDeps } from './deps.ts';
import { Faults } from './faults/faults.ts';
import type { FaultSettings } from './faults/switches.ts';
import { withFaults } from './faults/with-faults.ts';
import { runHousekeeping } from './housekeeping.ts';
import { jobsOf } from './jobs/jobs.ts';
import { linkPasswords } from './links/password.ts';
import { type Listener, startListener } from './listener.ts';
import { Previews } from './previews/previews.ts';
import { createRouter, ONLY_HOST, type Router } from './router.ts';
import { WebFiles, type WebFilesOptions } from './save-url/web-files.ts';
import { searchesOf } from './search/searches.ts';
import { withInnerNamespaces } from './storage/inner-namespaces.ts';
import { openStores, type StoreOptions, type Stores } from './stores.ts';

export interface ServiceOptions extends StoreOptions {
  /** Port 0 takes any free port. */
  readonly listen: { readonly host: string; readonly port: number };
  /** A second address, for functions that carry file bytes. Without it, one address answers all functions. */
  readonly contentListen?: ServiceOptions['listen'];
  /** Serves https with these. */
  readonly tls?: CertificateFiles;
  /** Prefix of shared links' URLs, if not the listener's own: `https://files.example`, perhaps with a path. */
  readonly publicUrl?: string;
  /** Prefix of temporary links' URLs, if not the listener's own, for example behind a proxy. */
  readonly contentPublicUrl?: string;
  /** Faults to inject, for tests of clients. None by default. */
  readonly faults?: FaultSettings;
  /** Limits of the listener that differ from the default. */
  readonly limits?: Partial<ListenerLimits>;
  /** Proxies whose `Forwarded` or `X-Forwarded-For` is believed. */
  readonly trustedProxies?: Networks;
  /** Addresses that `save_url` may fetch from, beside the public Internet. */
  readonly webFiles?: WebFilesOptions;
  /** The compiled program that renders previews, if it is not next to this module. */
  readonly renderProcess?: URL;
}

/** The account and scopes of a token that `grant` makes. */
interface GrantRequest {
  readonly accountId: string;
  readonly scopes: readonly Scope[];
  /** Expiry of the access token; never by default. */
  readonly expiresMs?: number;
}

export interface RunningService {
  /** The base, notify and web URL in one, without a slash at the end. */
  readonly url: string;
  /** The content URL: the same, unless file bytes have an address of their own. */
  readonly contentUrl: string;
  /** Returns the default account's credentials: the same at each call and after restarts, until they are revoked. */
  provision(): Promise<Credentials>;
  /** Returns an access token for each drive of a gateway, each in an account of its own. Throws `DriveAccountError`. */
  provisionDrives(
    drives: readonly EmbeddedDrive[],
    purpose: DrivePurpose,
  ): Promise<ReadonlyMap<string, string>>;
  /** Adds an account with an empty home, in a team if one is named. Its address must be new. */
  addAccount(account: NewAccount, team?: string): Promise<Account>;
  /** Returns an access token for an account, issued to the default account's app. */
  grant(request: GrantRequest): Promise<string>;
  /**
   * Reads the certificate's files again and uses them for new connections. Throws `CertificateError`, and then keeps
   * the old certificate.
   */
  renewCertificate(): void;
  /** Sets the start of links to a URL below which a proxy forwards requests: `https://drive.example/.davgate`. */
  setLinkUrl(url: string): void;
  /** Replaces the faults that are injected. Throws `FaultSettingError`. */
  setFaults(faults: FaultSettings): void;
  /** Waits for running requests within the grace period, ends long polls, and closes everything. */
  close(): Promise<void>;
}

/**
 * Starts the embedded storage service on one port. Rejects when the port is taken, the directory cannot be used, or an
 * option is wrong; nothing stays open then.
 */
export async function startService(options: ServiceOptions): Promise<RunningService> {
  const faults = new Faults(options.faults ?? {}, options.clock);
  const stores = await openStores(options);
  try {
    return await serve(options, stores, faults);
  } catch (error) {
    await stores.close();
    throw error;
  }
}

async function serve(options: ServiceOptions, stores: Stores, faults: Faults): Promise<RunningService> {
  const { dataDirectory, clock, log } = options;
  let publicUrl = checkedPublicUrl(options.publicUrl);
  const contentPublicUrl = checkedPublicUrl(options.contentPublicUrl);
  const { directory } = stores;
  const { accounts, tokens } = directory;
  const storage = withInnerNamespaces(stores.storage, teamHomesIn(accounts));
  const withHome = homesIn(storage);
  const closing = new AbortController();
  let open: (router: Router) => void = () => undefined;
  // A request that arrives while the second address is being opened waits: answers name both addresses.
  const opened = new Promise<Router>((resolve) => {
    open = resolve;
  });
  const answer: AnswerAt = async (exchange, role) => (await opened)(exchange, hosts[role]);
  const { base, content } = await startListeners(options, answer);
  const hosts: Readonly<Record<Host['role'], Host>> = {
    all: ONLY_HOST,
    base: { role: 'base', otherUrl: contentPublicUrl ?? content?.publicUrl ?? base.publicUrl },
    content: { role: 'content', otherUrl: publicUrl ?? base.publicUrl },
  };
  const previews = new Previews(clock, options.renderProcess);
  // This process holds the lock of the data directory, so any other that had jobs has ended.
  if (stores.isAlone)
    await directory.nodes.endAll(clock.now()).catch((error: unknown) => {
      log.warn('the leases of earlier processes could not be ended', { error: String(error) });
    });
  const jobs = jobsOf({ ...directory, clock, log, closing: closing.signal });
  const webUrl = () => publicUrl ?? base.publicUrl;
  const deps: ServiceDeps = {
    storage,
    linkPasswords: linkPasswords({ ...directory, clock, log, closing: closing.signal }),
    ...directory,
    previews,
    jobs,
    searches: searchesOf(),
    webFiles: new WebFiles(clock, log, options.webFiles),
    clock,
    freeBytes: () => stores.freeBytes(),
    withHome: async (account) => inRoot(await withHome(account)),
    makeTeamFolder: teamFoldersIn(storage),
    webUrl,
    contentUrl: () => contentPublicUrl ?? webUrl(),
    closing: closing.signal,
  };
  open(createRouter(withFaults(deps, faults), faults, log));
  const housekeeping = runHousekeeping({ ...deps, log }, closing.signal);
  // Serialised, so that two simultaneous calls do not create everything twice.
  let provisioning: Promise<unknown> = Promise.resolve();
  const provisionOnce = (): Promise<Credentials> => {
    const next = provisioning.then(() => provision(directory, clock, dataDirectory));
    provisioning = next.catch(() => undefined);
    return next;
  };

  async function shutDown(over: AbortSignal): Promise<void> {
    closing.abort();
    await Promise.all([base.close(over), content?.close(over)]);
    await jobs.ended();
    previews.close();
    await provisioning;
    // A round of housekeeping may take minutes. It ends when the stores are closed, and the next start continues it.
    await Promise.all([housekeeping, stores.close()]);
  }

  let closed: Promise<void> | undefined;
  return {
    url: base.url,
    contentUrl: (content ?? base).url,
    provision: provisionOnce,
    async provisionDrives(drives, purpose) {
      const credentials = await provisionOnce();
      const needs = { purpose, directory, credentials, dataDirectory, nowMs: clock.now() };
      return provisionDrives(drives, { ...needs, ...homesOfDrives(storage, withHome) });
    },
    addAccount: (account, team) => addAccount(accounts, account, team),
    async grant({ accountId, scopes, expiresMs }) {
      const { appKey } = await provisionOnce();
      return await tokens.grantAccess(clock.now(), { accountId, appKey, scopes }, expiresMs);
    },
    renewCertificate() {
      const { tls } = options;
      if (tls) for (const listener of [base, content]) listener?.replaceCertificate(tls);
    },
    setLinkUrl(url) {
      publicUrl = checkedPublicUrl(url);
    },
    setFaults: (settings) => faults.set(settings),
    close() {
      closed ??= withinGrace({ clock, log }, shutDown);
      return closed;
    },
  };
}

interface Listeners {
  readonly base: Listener;
  /** `undefined`: the base answers all functions. */
  readonly content: Listener | undefined;
}

/** Answers a request at the address with this role. */
type AnswerAt = (exchange: Exchange, role: Host['role']) => Promise<Answer>;

/** Opens one or two ports; none stays open when it throws. */
async function startListeners(options: ServiceOptions, answer: AnswerAt): Promise<Listeners> {
  const { listen, contentListen, tls, limits, trustedProxies, clock, log } = options;
  const startAt = (place: ServiceOptions['listen'], role: Host['role']) => {
    const needs = { tls, limits, trustedProxies, clock, log };
    return startListener({ ...needs, listen: place, answer: (exchange) => answer(exchange, role) });
  };
  if (!contentListen) return { base: await startAt(listen, 'all'), content: undefined };
  const base = await startAt(listen, 'base');
  try {
    return { base, content: await startAt(contentListen, 'content') };
  } catch (error) {
    await base.close(AbortSignal.abort());
    throw error;
  }
}

/** Returns the URL without a slash at its end. */
function checkedPublicUrl(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isPublic =
    url && /^https?:$/.test(url.protocol) && !url.search && !url.hash && !url.username && !url.password;
  if (!isPublic)
    throw new Error(`${JSON.stringify(text)} is not a public URL; give one like https://files.example`);
  return url.href.replace(/\/+$/, '');
}
