import { foldName } from '../../util/path.ts';
import type { FileEntry, NameSearch } from '../files.ts';
import { type OverlayEntries, pendingEntry } from './overlay-entries.ts';
import type { PendingFiles } from './pending-files.ts';

/** Makes a search on top of another: pending files are found too, before all others. */
export function createPendingSearch(
  base: NameSearch,
  pending: PendingFiles,
  shown: OverlayEntries,
): NameSearch {
  return {
    async search(query, cursor, signal) {
      const page = await base.search(query, cursor, signal);
      const landed = page.entries.filter(({ path }) => !pending.newest(path)).map((entry) => shown.of(entry));
      const waiting = cursor === undefined ? matching(pending, query) : [];
      return { ...page, entries: [...waiting, ...landed] };
    },
  };
}

/** Returns the pending files whose names have every word of `query`. */
function matching(pending: PendingFiles, query: string): readonly FileEntry[] {
  const words = foldName(query).trim().split(/\s+/);
  const found = new Map<string, FileEntry>();
  for (const { write } of pending.all()) {
    const newest = pending.newest(write.path);
    if (!newest || found.has(write.path)) continue;
    const entry = pendingEntry(newest.write);
    const name = foldName(entry.name);
    if (words.every((word) => name.includes(word))) found.set(write.path, entry);
  }
  return [...found.values()];
}
