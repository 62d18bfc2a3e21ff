import type { Remote } from '../api/remote.ts';
import type { MetadataCache } from './cache/metadata-cache.ts';
import { fileErrorOf } from './errors.ts';
import type { Entry, NameSearch } from './files.ts';
import type { LocalFiles } from './local-files.ts';
import type { ModifiedTimes } from './modified-times.ts';
import { isWithinWaiting } from './names.ts';

interface SearchDeps {
  readonly remote: Pick<Remote, 'search'>;
  readonly metadata: Pick<MetadataCache, 'peek'>;
  readonly localFiles: Pick<LocalFiles, 'owns'>;
  readonly times: Pick<ModifiedTimes, 'applyTo'>;
}

/** Searches the service. Hides what listings hide, and prefers what the cache knows to the service's index, which lags. */
export function createNameSearch({ remote, metadata, localFiles, times }: SearchDeps): NameSearch {
  const shown = (found: Entry): readonly Entry[] => {
    if (isWithinWaiting(found.path) || localFiles.owns(found.path)) return [];
    const known = metadata.peek(found.path) ?? found;
    return known === 'absent' ? [] : [known];
  };
  return {
    async search(query, cursor, signal) {
      try {
        const { entries, ...rest } = await remote.search(query, cursor, signal);
        return { ...rest, entries: await times.applyTo(entries.flatMap(shown)) };
      } catch (error) {
        throw fileErrorOf(error, 'the drive');
      }
    },
  };
}
