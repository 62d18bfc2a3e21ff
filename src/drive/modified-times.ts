import type { Entry } from '../api/remote.ts';
import type { Times } from '../state/times.ts';

/** The modification times that clients have set. The service cannot change the time of stored content. */
export class ModifiedTimes {
  constructor(private readonly times: Times) {}

  /** Returns `entries` with the times that clients have set; one query for all. */
  async applyTo<E extends Entry>(entries: readonly E[]): Promise<readonly E[]> {
    if (entries.length === 0) return entries;
    const found = await this.of(entries);
    if (found.size === 0) return entries;
    return entries.map((entry) => {
      const modifiedMs = found.get(entry.id);
      return modifiedMs === undefined ? entry : { ...entry, modifiedMs };
    });
  }

  async set<E extends Entry>(entry: E, modifiedMs: number): Promise<E> {
    await this.times.set(entry.id, { rev: contentOf(entry), modifiedMs });
    return { ...entry, modifiedMs };
  }

  /** Returns the times set for the current content of `entries`, by id. */
  async of(entries: readonly Entry[]): Promise<ReadonlyMap<string, number>> {
    const found = await this.times.of(entries.map(({ id }) => id));
    const fitting = entries.flatMap((entry): [string, number][] => {
      const time = found.get(entry.id);
      return time && time.rev === contentOf(entry) ? [[entry.id, time.modifiedMs]] : [];
    });
    return new Map(fitting);
  }

  forget(ids: readonly string[]): Promise<void> {
    return this.times.forget(ids);
  }
}

// A time belongs to a content. A move changes a file's revision, but not its hash.
function contentOf(entry: Entry): string {
  return entry.kind === 'folder' ? '' : (entry.contentHash ?? entry.rev);
}
