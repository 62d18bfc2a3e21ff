import type { Entry } from '../api/remote.ts';
import type { Times } from '../state/times.ts';

/** Modification times that clients set after the fact, laid over what the service says. */
export class SetTimes {
  constructor(private readonly times: Times) {}

  /** `entries` as they are to be shown; one question for all. */
  async on<E extends Entry>(entries: readonly E[]): Promise<readonly E[]> {
    if (entries.length === 0) return entries;
    const found = await this.times.of(entries.map((entry) => entry.id));
    if (found.size === 0) return entries;
    return entries.map((entry) => {
      const time = found.get(entry.id);
      return time && time.rev === contentOf(entry) ? { ...entry, modifiedMs: time.modifiedMs } : entry;
    });
  }

  async set<E extends Entry>(entry: E, modifiedMs: number): Promise<E> {
    await this.times.set(entry.id, { rev: contentOf(entry), modifiedMs });
    return { ...entry, modifiedMs };
  }

  /** Gives `to` the time that was set for `from`, if one was; `to` as it is to be shown. */
  async copy<E extends Entry>(from: Entry, to: E): Promise<E> {
    const time = (await this.times.of([from.id])).get(from.id);
    return time && time.rev === contentOf(from) ? this.set(to, time.modifiedMs) : to;
  }

  forget(ids: readonly string[]): Promise<void> {
    return this.times.forget(ids);
  }
}

// A time is set for a content. Of a file that was moved the service changes the revision, not the hash.
function contentOf(entry: Entry): string {
  return entry.kind === 'folder' ? '' : (entry.contentHash ?? entry.rev);
}
