import type { DeadProperties } from '../../state/properties.ts';
import type { DriveState } from '../../state/state.ts';

/** A request that saw a file under its first id is long done when so many others have landed. */
const REMEMBERED_MAX = 10_000;

/** The ids that new files had before the service gave them theirs. */
export class FileIds {
  readonly #now = new Map<string, string>();

  /** To be called at the same time as the properties are renamed. */
  renamed(from: string, to: string): void {
    this.#now.set(from, to);
    const [oldest] = this.#now.keys();
    if (oldest !== undefined && this.#now.size > REMEMBERED_MAX) this.#now.delete(oldest);
  }

  /** `state`, where a request that began before a file got its id finds and changes its properties all the same. */
  follow(state: DriveState): DriveState {
    const { properties } = state;
    const now = (id: string) => this.#now.get(id) ?? id;
    const followed: DeadProperties = {
      of: async (ids) => {
        // Both: the renaming may be on its way.
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
