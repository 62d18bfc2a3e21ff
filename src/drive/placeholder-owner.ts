import { StateUnwritable } from '../state/errors.ts';
import type { Placeholder, PlaceholderStore } from '../state/placeholders.ts';
import { type Clock, instantIn, remainingMs } from '../util/clock.ts';
import type { Path } from '../util/path.ts';
import { FileError } from './errors.ts';
import type { Gateways } from './gateways.ts';

interface PlaceholderOwnerOptions {
  readonly store: PlaceholderStore;
  /** `store.get`, after which the metadata cache has what other gateways have committed. */
  readonly get: PlaceholderStore['get'];
  readonly gateways: Pick<Gateways, 'own' | 'inherits'>;
  readonly clock: Clock;
  /** Ends all waits. */
  readonly stop: AbortSignal;
  /** Called with a placeholder of another gateway that this one has to commit from now on. */
  readonly taken: (placeholder: Placeholder) => void;
}

/** How often a request looks whether another gateway has done with a placeholder, in ms. */
const LOOK_EVERY_MS = 100;

/** How long it does so, in ms: the call that follows must end too before clients give up. */
export const TAKE_MS_MAX = 10_000;

/**
 * Which of several gateways changes and commits a placeholder: its owner. While the owner commits, moves or removes it, no
 * other gateway becomes the owner. Does nothing where there is only one gateway.
 */
export class PlaceholderOwner {
  constructor(private readonly options: PlaceholderOwnerOptions) {}

  /**
   * Makes this gateway the owner of the placeholder at `path`, if there is one, and with `isBusy` also marks it as `mark` does.
   * Waits until another gateway that is busy with it has done, so that what that one has committed is at the service.
   * Throws `busy` if that takes too long.
   */
  async take(path: Path, { isBusy }: { readonly isBusy: boolean }): Promise<void> {
    const { clock, stop } = this.options;
    const until = instantIn(clock, TAKE_MS_MAX);
    while (!(await this.#tryToTake(path, isBusy))) {
      if (stop.aborted || remainingMs(clock, until) <= 0)
        throw new FileError('busy', `another gateway is busy with ${path}; try again`);
      await clock.sleep(LOOK_EVERY_MS, stop).catch(() => {});
    }
  }

  /** Makes this gateway the owner of a placeholder that it inherits. Returns `false` if that has changed since it was read. */
  async inherit(placeholder: Placeholder): Promise<boolean> {
    const { own } = this.options.gateways;
    if (placeholder.owner === own) return true;
    return this.#exchange(placeholder, { ...placeholder, owner: own, isBusy: undefined });
  }

  /** Marks the placeholder at `path` as busy and returns it. Returns `undefined` if this gateway neither owns nor inherits it. */
  async mark(path: Path): Promise<Placeholder | undefined> {
    const { store, get, gateways } = this.options;
    for (;;) {
      const found = await get(path);
      if (!found || !store.exchange) return found;
      const isOwn = found.owner === gateways.own;
      if (!isOwn && !gateways.inherits(found.owner)) return undefined;
      if (isOwn && found.isBusy) return found;
      const marked = { ...found, owner: gateways.own, isBusy: true };
      if (await this.#exchange(found, marked)) return marked;
    }
  }

  /** Takes the mark away. */
  async unmark(path: Path): Promise<void> {
    const { store, gateways } = this.options;
    if (!store.exchange) return;
    const found = await store.get(path);
    if (found?.isBusy && found.owner === gateways.own)
      await store.exchange(found, { ...found, isBusy: undefined });
  }

  /** Returns `false` while another gateway is busy with the placeholder. */
  async #tryToTake(path: Path, isBusy: boolean): Promise<boolean> {
    const { store, get, gateways, taken } = this.options;
    if (!store.exchange) return true;
    for (;;) {
      const found = await get(path);
      if (!found) return true;
      const isOwn = found.owner === gateways.own;
      if (isOwn && (found.isBusy || !isBusy)) return true;
      if (found.isBusy && !gateways.inherits(found.owner)) return false;
      const next = { ...found, owner: gateways.own, isBusy: isBusy ? true : undefined };
      if (!(await this.#exchange(found, next))) continue;
      if (!isOwn) taken(found);
      return true;
    }
  }

  /** `store.exchange`; a store without room for it goes without marks, because commits and removals make room. */
  async #exchange(last: Placeholder, next: Placeholder): Promise<boolean> {
    try {
      return (await this.options.store.exchange?.(last, next)) ?? true;
    } catch (error) {
      if (error instanceof StateUnwritable) return true;
      throw error;
    }
  }
}
