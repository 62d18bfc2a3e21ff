import { type Clock, elapsedMs, type Instant } from '../../util/clock.ts';
import type { Codes } from '../accounts/codes.ts';
import type { Tokens } from '../accounts/tokens.ts';
import type { ServiceDeps } from '../deps.ts';
import { type Incoming, type Storage, StorageError } from '../storage/storage.ts';
import { paced } from './content.ts';
import type { Faults } from './faults.ts';

/** Maximum number of tokens and sessions whose age is known; the oldest are dropped. */
const AGES_MAX = 100_000;

/** Returns `deps` with faults: one commit at a time, sessions and tokens that expire early, slow uploads. */
export function withFaults(deps: ServiceDeps, faults: Faults): ServiceDeps {
  return {
    ...deps,
    storage: storageWithFaults(deps.storage, faults),
    ...tokensWithFaults(deps, faults),
  };
}

function tokensWithFaults(
  { tokens, codes }: ServiceDeps,
  faults: Faults,
): { readonly tokens: Tokens; readonly codes: Codes } {
  const ages = new Ages(faults.clock);
  const aging: Codes = {
    ...codes,
    async exchange(nowMs, exchange) {
      const exchanged = await codes.exchange(nowMs, exchange);
      if (typeof exchanged === 'object') ages.begin(exchanged.token);
      return exchanged;
    },
  };
  return { codes: aging, tokens: agingTokens(tokens, ages, faults) };
}

function agingTokens(tokens: Tokens, ages: Ages, faults: Faults): Tokens {
  return {
    ...tokens,
    async refresh(nowMs, request) {
      const issued = await tokens.refresh(nowMs, request);
      if (typeof issued === 'object') ages.begin(issued.token);
      return issued;
    },
    async bearer(nowMs, token) {
      const bearer = await tokens.bearer(nowMs, token);
      const isOver = ages.isOver(token, faults.value('token-lifetime-seconds'));
      return bearer && isOver ? { ...bearer, expired: true } : bearer;
    },
  };
}

function storageWithFaults(storage: Storage, faults: Faults): Storage {
  const turns = new Turns(faults);
  const ages = new Ages(faults.clock);
  const slow = (body: Incoming): Incoming => ({ ...body, bytes: paced(faults, body.bytes) });
  const isOver = (session: string) => ages.isOver(session, faults.value('session-lifetime-seconds'));
  const check = (session: string) => {
    if (isOver(session)) throw sessionOver();
  };
  return {
    ...storage,
    upload: (namespace, commit, body, ...rest) =>
      turns.afterBody(namespace, slow(body), (all) => storage.upload(namespace, commit, all, ...rest)),
    async startSession(namespace, kind, body, close) {
      const session = await storage.startSession(namespace, kind, slow(body), close);
      ages.begin(session);
      return session;
    },
    async appendSession(namespace, at, body, close) {
      check(at.session);
      await storage.appendSession(namespace, at, slow(body), close);
    },
    async appendSessions(namespace, pieces, body) {
      const outcomes = await storage.appendSessions(namespace, pieces, slow(body));
      return outcomes.map((outcome, index) =>
        isOver(pieces[index]?.session ?? '') ? sessionOver() : outcome,
      );
    },
    async finishSession(namespace, at, commit, body) {
      check(at.session);
      const finish = (all: Incoming) => storage.finishSession(namespace, at, commit, all);
      return await turns.afterBody(namespace, slow(body), finish);
    },
    async finishSessions(namespace, entries) {
      const refused = new Map<(typeof entries)[number], StorageError>();
      for (const entry of entries) {
        if (isOver(entry.session)) refused.set(entry, sessionOver());
        else if (faults.happens('contention-entry-share')) refused.set(entry, contended());
      }
      const taken = entries.filter((entry) => !refused.has(entry));
      const finished = (await turns.take(namespace, () => storage.finishSessions(namespace, taken))).values();
      return entries.map((entry) => refused.get(entry) ?? finished.next().value ?? contended());
    },
    createFolder: (namespace, ...rest) =>
      turns.take(namespace, () => storage.createFolder(namespace, ...rest)),
    remove: (namespace, ...rest) => turns.take(namespace, () => storage.remove(namespace, ...rest)),
    removeForever: (namespace, ...rest) =>
      turns.take(namespace, () => storage.removeForever(namespace, ...rest)),
    relocate: (namespace, ...rest) => turns.take(namespace, () => storage.relocate(namespace, ...rest)),
    createFolders: (namespace, ...rest) =>
      turns.take(namespace, () => storage.createFolders(namespace, ...rest)),
    removeAll: (namespace, ...rest) => turns.take(namespace, () => storage.removeAll(namespace, ...rest)),
    relocateAll: (namespace, ...rest) => turns.take(namespace, () => storage.relocateAll(namespace, ...rest)),
    relocateTogether: (namespace, ...rest) =>
      turns.take(namespace, () => storage.relocateTogether(namespace, ...rest)),
    restore: (namespace, ...rest) => turns.take(namespace, () => storage.restore(namespace, ...rest)),
  };
}

/** The lock that a commit takes on its namespace. Commits that arrive meanwhile are refused at once. */
class Turns {
  readonly #taken = new Set<string>();

  constructor(private readonly faults: Faults) {}

  /** Runs a commit that waits for no body. */
  take<T>(namespace: string, commit: () => Promise<T>): Promise<T> {
    return this.#taking(namespace, async (enter) => {
      await enter();
      return await commit();
    });
  }

  /** Runs a commit that takes the lock when its body has arrived. */
  afterBody<T>(namespace: string, body: Incoming, commit: (body: Incoming) => Promise<T>): Promise<T> {
    return this.#taking(namespace, (enter) => commit({ ...body, bytes: then(body.bytes, enter) }));
  }

  async #taking<T>(namespace: string, run: (enter: () => Promise<void>) => Promise<T>): Promise<T> {
    let isMine = false;
    try {
      return await run(async () => {
        const holdMs = this.faults.value('contention-hold-ms');
        if (holdMs === 0) return;
        if (this.#taken.has(namespace)) throw contended();
        this.#taken.add(namespace);
        isMine = true;
        await this.faults.clock.sleep(holdMs);
      });
    } finally {
      if (isMine) this.#taken.delete(namespace);
    }
  }
}

async function* then(
  bytes: AsyncIterable<Uint8Array>,
  atEnd: () => Promise<void>,
): AsyncGenerator<Uint8Array> {
  yield* bytes;
  await atEnd();
}

/** Start times by name. Things that began before the service started have no age. */
class Ages {
  readonly #began = new Map<string, Instant>();

  constructor(private readonly clock: Clock) {}

  begin(name: string): void {
    this.#began.set(name, this.clock.instant());
    const [oldest] = this.#began.keys();
    if (this.#began.size > AGES_MAX && oldest !== undefined) this.#began.delete(oldest);
  }

  isOver(name: string, lifetimeSeconds: number): boolean {
    const began = this.#began.get(name);
    if (lifetimeSeconds <= 0 || began === undefined) return false;
    return elapsedMs(this.clock, began) >= lifetimeSeconds * 1000;
  }
}

function contended(): StorageError {
  return new StorageError({ kind: 'write', tag: 'too_many_write_operations' });
}

function sessionOver(): StorageError {
  return new StorageError({ kind: 'session', tag: 'not_found' });
}
