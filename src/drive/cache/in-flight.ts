import { isKeyWithin, parentKeyOf } from '../../util/path.ts';
import type { Known } from './local-changes.ts';

/** The scope of a request to the service: one entry, the children of a folder, or everything below it. */
export type Scope = 'entry' | 'folder' | 'tree';

/** A running request to the service, and the changes since it was sent. */
export interface Fetch {
  readonly scope: Scope;
  readonly key: string;
  /** Newer knowledge than the answer, by key. */
  changed: Map<string, Known | 'unsure'>;
  /** Trees that were dropped meanwhile; the answer is outdated for them. */
  readonly dropped: string[];
  /** Whether the answer may only be used by the callers that wait for it, and must not be cached. */
  isVoid: boolean;
}

/** The running requests. Each records the changes made before its answer arrives. */
export class InFlight {
  readonly #underWay = new Set<Fetch>();
  #generation = 0;

  /** A number that changes when the answers of running requests become too old for new callers. */
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

  /** Records that `key` is now `known`; `undefined`: it changed into something unknown. */
  changed(key: string, known: Known | undefined): void {
    for (const fetch of this.#underWay) if (covers(fetch, key)) fetch.changed.set(key, known ?? 'unsure');
  }

  /** Records that `key` and everything below was replaced. */
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

/** Returns the changes since the last call. */
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
