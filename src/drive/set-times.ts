import type { Entry } from '../api/remote.ts';
import type { Times } from '../state/times.ts';

/** Modification times that clients set after the fact, laid over what the service says. */
export class ModifiedTimes {
  constructor(private readonly times: Times) {}

  /** `entries` as they are to be shown; one question for all. */
  async on<E extends Entry>(entries: readonly E[]): Promise<readonly E[]> {
    if (entries.length === 0) return entries;
    const found = await this.setFor(entries);
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

  /** The times that were set for the content that `entries` have, by id. */
  async setFor(entries: readonly Entry[]): Promise<ReadonlyMap<string, number>> {
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

// A time is set for a content. Of a file that was moved the service changes the revision, not the hash.
function contentOf(entry: Entry): string {
  return entry.kind === 'folder' ? '' : (entry.contentHash ?? entry.rev);
}
