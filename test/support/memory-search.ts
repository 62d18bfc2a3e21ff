import type { Entry, SearchPage } from '../../src/api/remote.ts';
import { foldName } from '../../src/util/path.ts';

/** Returns a page of the entries whose names contain every word of `query`. The cursor is the number of entries before. */
export function searchPage(
  entries: readonly Entry[],
  query: string,
  cursor: string | undefined,
  pageEntries: number,
): SearchPage {
  const words = foldName(query).trim().split(/\s+/);
  const found = entries.filter(({ name }) => words.every((word) => foldName(name).includes(word)));
  const start = Number(cursor ?? 0);
  const end = start + pageEntries;
  return { entries: found.slice(start, end), ...(end < found.length && { cursor: `${end}` }) };
}
