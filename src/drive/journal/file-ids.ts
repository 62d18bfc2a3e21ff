import type { DeadProperties } from '../../state/properties.ts';
import type { DriveState } from '../../state/state.ts';

/** Number of renamed ids that are remembered: longer than any request that still uses a first id. */
const REMEMBERED_MAX = 10_000;

/** Maps the ids that new files had before they landed to the ids that the service gave them. */
export class FileIds {
  readonly #now = new Map<string, string>();

  /** Records a new id. Must be called together with the renaming of the properties. */
  renamed(from: string, to: string): void {
    this.#now.set(from, to);
    const [oldest] = this.#now.keys();
    if (oldest !== undefined && this.#now.size > REMEMBERED_MAX) this.#now.delete(oldest);
  }

  /**
   * Returns `state` with properties that are found under first ids too, for requests that began before a file landed.
   */
  follow(state: DriveState): DriveState {
    const { properties } = state;
    const now = (id: string) => this.#now.get(id) ?? id;
    const followed: DeadProperties = {
      of: async (ids) => {
        // Under both ids, because the properties may be about to be renamed.
        const found = await properties.of([...new Set([...ids, ...ids.map(now)])]);
        const byAsked = ids.flatMap((id) => {
          const its = found.get(now(id)) ?? found.get(id);
          return its ? [[id, its] as const] : [];
        });
        return new Map(byAsked);
      },
      ids: () => properties.ids(),
      isEmpty: () => properties.isEmpty(),
      change: (id, changes) => properties.change(now(id), changes),
      copy: (from, to) => properties.copy(now(from), now(to)),
      rename: (from, to) => properties.rename(now(from), now(to)),
      forget: (ids) => properties.forget(ids.map(now)),
      version: () => properties.version(),
    };
    return { ...state, properties: followed };
  }
}
