import type { Known } from './folder-cache.ts';
import { isKeyWithin, parentKeyOf } from './key-tree.ts';

/** What a question to the service is about: one entry, the children of a folder, or all below it. */
export type Scope = 'entry' | 'folder' | 'tree';

/** A question to the service under way, and what has changed since it was asked. */
export interface Fetch {
  readonly scope: Scope;
  readonly key: string;
  /** By key: what is known better than by the answer. */
  changed: Map<string, Known | 'unsure'>;
  /** Trees that were dropped meanwhile; the answer tells nothing of them. */
  readonly dropped: string[];
  /** The answer is good for those who asked, and is not to be remembered. */
  isVoid: boolean;
}

/** The questions under way: each learns of what changes before its answer has come. */
export class InFlight {
  readonly #underWay = new Set<Fetch>();
  #generation = 0;

  /** Changes whenever answers under way become useless to those who ask from now on. */
  get generation(): number {
    return this.#generation;
  }

  begin(scope: Scope, key: string): Fetch {
    const fetch: Fetch = { scope, key, changed: new Map(), dropped: [], isVoid: false };
    this.#underWay.add(fetch);
    return fetch;
  }

  end(fetch: Fetch): void {
    this.#underWay.delete(fetch);
  }

  /** `undefined`: it changed, and what it is now is not known. */
  changed(key: string, known: Known | undefined): void {
    for (const fetch of this.#underWay) if (covers(fetch, key)) fetch.changed.set(key, known ?? 'unsure');
  }

  /** All at `key` and below is another one now. */
  dropped(key: string): void {
    for (const fetch of this.#underWay) {
      const inside = isKeyWithin(fetch.key, key) && !(fetch.scope === 'entry' && fetch.key === key);
      if (inside) this.#void(fetch);
      else if (fetch.scope === 'tree' && isKeyWithin(key, fetch.key)) fetch.dropped.push(key);
    }
  }

  voidAll(): void {
    for (const fetch of this.#underWay) this.#void(fetch);
  }

  #void(fetch: Fetch): void {
    fetch.isVoid = true;
    this.#generation++;
  }
}

/** What changed since the last call. */
export function takeChanges(fetch: Fetch): ReadonlyMap<string, Known | 'unsure'> {
  const { changed } = fetch;
  if (changed.size > 0) fetch.changed = new Map();
  return changed;
}

function covers({ scope, key }: Fetch, changedKey: string): boolean {
  if (scope === 'entry') return changedKey === key;
  if (scope === 'folder') return parentKeyOf(changedKey) === key;
  return changedKey !== key && isKeyWithin(changedKey, key);
}
