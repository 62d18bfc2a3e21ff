import { setImmediate as otherCalls } from 'node:timers/promises';
import type { Clock } from '../util/clock.ts';
import type { Log } from '../util/log.ts';
import { type Accounts, inRoot } from './accounts/accounts.ts';
import { firstItems } from './accounts/homes.ts';
import type { Tokens } from './accounts/tokens.ts';
import type { GuessRows } from './directory/guess-rows.ts';
import type { ItemRow, ItemRows } from './directory/item-rows.ts';
import type { Nodes } from './directory/nodes.ts';
import type { JobRows } from './jobs/job-rows.ts';
import type { Links } from './links/links.ts';
import type { TemporaryLinks } from './links/temporary-links.ts';
import type { SignedInBrowsers } from './oauth/signed-in.ts';
import type { Storage } from './storage/storage.ts';

/** Pause between two rounds, in ms. Nothing that a round removes is urgent. */
const PAUSE_MS = 60 * 60 * 1000;

/** Rows that are examined or removed before other calls get their turn; this takes a few milliseconds. */
const STEP_ROWS = 200;

/** Items of a removed account that one page lists. Each is deleted by a commit of its own, which costs far more than a page. */
const HOME_PAGE_ITEMS = 20;

interface HousekeepingDeps {
  readonly storage: Storage;
  readonly accounts: Accounts;
  readonly tokens: Tokens;
  readonly signedIn: SignedInBrowsers;
  readonly guesses: GuessRows;
  readonly jobRows: JobRows;
  readonly nodes: Nodes;
  readonly links: Links;
  readonly itemRows: readonly ItemRows[];
  readonly temporaryLinks: TemporaryLinks;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Removes in the background what is no longer needed: old upload sessions, history, links, tokens, sign-ins, guesses and jobs, and
 * what a crash left behind. Runs at the start and then once an hour, until `closing` is aborted. Never rejects.
 */
export async function runHousekeeping(deps: HousekeepingDeps, closing: AbortSignal): Promise<void> {
  const { clock, log } = deps;
  while (!closing.aborted) {
    // One part that fails, for example on a full disk, does not keep the others from making room.
    for (const part of partsOf(deps, closing))
      await part().catch((error: unknown) => {
        if (!closing.aborted) log.warn('housekeeping failed', { error: String(error) });
      });
    await clock.sleep(PAUSE_MS, closing).catch(() => undefined);
  }
}

/** Returns what a round does, one after the other. */
function partsOf(deps: HousekeepingDeps, closing: AbortSignal): readonly (() => Promise<void>)[] {
  const { storage, tokens, signedIn, guesses, jobRows, nodes, links, temporaryLinks, clock, itemRows } = deps;
  const old = [tokens, signedIn, guesses, jobRows, nodes, links, temporaryLinks];
  return [
    () => clearHomes(deps, closing),
    async () => {
      if (!closing.aborted) await storage.tidy();
    },
    // While the accounts that `tidy` has loaded for a moment still are.
    ...itemRows.map((rows) => () => dropRowsOfNothing(rows, deps, closing)),
    async () => {
      if (!closing.aborted) await storage.tidyShared();
    },
    ...old.map((rows) => async () => {
      while (!closing.aborted && (await rows.forgetOld(clock.now(), STEP_ROWS)) === STEP_ROWS)
        await otherCalls();
    }),
  ];
}

/** Deletes the files of removed accounts for good, with their history. */
async function clearHomes({ accounts, storage, log }: HousekeepingDeps, closing: AbortSignal): Promise<void> {
  for (const namespace of await accounts.abandonedHomes()) {
    if (closing.aborted) return;
    // An account that was never used has no namespace yet. A quota of 0 keeps new files out.
    await storage.createNamespace(namespace, 0);
    // The next round continues.
    if (!(await clearHome(namespace, storage, closing))) continue;
    await accounts.forgetHome(namespace);
    log.info('the files of a removed account are deleted', { namespace });
  }
}

/** Deletes the items of a home for good. Returns whether none is left. */
async function clearHome(namespace: string, storage: Storage, closing: AbortSignal): Promise<boolean> {
  for (;;) {
    const { entries, hasMore } = await firstItems(storage, namespace, HOME_PAGE_ITEMS);
    if (entries.length === 0) return !hasMore;
    for (const { pathDisplay } of entries) {
      if (closing.aborted) return false;
      await storage.removeForever(namespace, pathDisplay, undefined);
    }
  }
}

/**
 * Removes links, tags and other rows of entries that do not exist and cannot be restored. Where processes share the storage,
 * each looks at the accounts whose metadata it has loaded. An idle account has its turn too: until its history has ended,
 * `Storage.tidy` loads it from time to time, and this follows before other accounts take its place.
 */
async function dropRowsOfNothing(
  rows: ItemRows,
  { accounts, storage }: HousekeepingDeps,
  closing: AbortSignal,
): Promise<void> {
  for (let after = 0; !closing.aborted; ) {
    const some = await rows.all(after, STEP_ROWS);
    for (const [namespace, theirs] of await byNamespace(accounts, some)) {
      const ids = theirs.map(({ itemId }) => itemId);
      const known = await storage.known(namespace, ids);
      for (const row of known ? theirs : []) if (!known?.has(row.itemId)) await rows.forget(row);
    }
    const last = some.at(-1);
    if (!last || some.length < STEP_ROWS) return;
    after = last.sequence;
    await otherCalls();
  }
}

/** Returns the rows of each namespace. An account that was removed meanwhile has no rows left. */
async function byNamespace(
  accounts: Accounts,
  rows: readonly ItemRow[],
): Promise<ReadonlyMap<string, readonly ItemRow[]>> {
  const owners = await accounts.findAll(rows.map(({ accountId }) => accountId));
  const found = new Map<string, ItemRow[]>();
  for (const [index, row] of rows.entries()) {
    const owner = owners[index];
    if (!owner) continue;
    const { namespace } = inRoot(owner);
    found.set(namespace, [...(found.get(namespace) ?? []), row]);
  }
  return found;
}
