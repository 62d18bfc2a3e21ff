import type { DeadProperties } from '../state/properties.ts';
import type { DriveState } from '../state/state.ts';

/** Number of renamed ids that are remembered: longer than any request that still uses a first id. */
const REMEMBERED_MAX = 10_000;

/**
 * Maps the ids that new files had before they were stored to the ids that the service gave them. It knows the files that this
 * process stores: another gateway that sets a property in the moment of the storing may lose it.
 */
export class FileIds {
  readonly #now = new Map<string, string>();

  constructor(private readonly properties: Pick<DeadProperties, 'rename'>) {}

  /** Gives the file with the id `to` the properties that it had under `from`, its first id. */
  async rename(from: string, to: string): Promise<void> {
    this.#now.set(from, to);
    const [oldest] = this.#now.keys();
    if (oldest !== undefined && this.#now.size > REMEMBERED_MAX) this.#now.delete(oldest);
    await this.properties.rename(from, to);
  }

  /**
   * Returns `state` with properties that are found under first ids too, for requests that began before a file was stored.
   */
  follow(state: DriveState): DriveState {
    const { properties } = state;
    const now = (id: string) => this.#now.get(id) ?? id;
    const followed: DeadProperties = {
      of: async (ids) => {
        if (!ids.some((id) => this.#now.has(id))) return properties.of(ids);
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
