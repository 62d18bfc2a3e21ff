import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import type { Item } from './dav.ts';
import { failureText } from './folder.ts';
import { ask } from './gateway.ts';
import { nameOf } from './paths.ts';

/** The answer of the gateway's `search`. */
interface Page {
  readonly items: readonly Omit<Item, 'name'>[];
  readonly cursor: string | null;
}

interface Found {
  readonly query: string | undefined;
  readonly items?: readonly Item[];
  readonly cursor?: string | undefined;
  readonly failure?: string;
}

export interface Search {
  /** `undefined` until the first answer. */
  readonly items: readonly Item[] | undefined;
  /** Why the drive could not be searched. */
  readonly failure: string | undefined;
  /** Adds the next page; absent when all is shown, and while a page is being loaded. */
  readonly more: (() => void) | undefined;
  /** Searches again. */
  readonly reload: () => void;
}

/** Searches the whole drive for `query`; nothing while it is `undefined`. */
export function useSearch(query: string | undefined): Search {
  const [found, setFound] = useState<Found>({ query: undefined });
  const [isLoading, setLoading] = useState(false);
  const running = useRef<AbortController>(null);
  const wanted = useRef(query);
  wanted.current = query;
  const load = useCallback(
    (before: readonly Item[], cursor: string | undefined) => {
      // Work that began during another search asks for that one, and must not stop this one.
      if (query === undefined || wanted.current !== query) return;
      running.current?.abort();
      const controller = new AbortController();
      running.current = controller;
      const { signal } = controller;
      const end = (answer: Omit<Found, 'query'>) => {
        if (signal.aborted) return;
        setFound({ query, ...answer });
        setLoading(false);
      };
      setLoading(true);
      ask<Page>('search', cursor === undefined ? { query } : { query, cursor }, signal).then(
        (page) => end({ items: joined(before, page), cursor: page.cursor ?? undefined }),
        // The pages before stay, and their cursor leads on when the drive answers again.
        (error: unknown) => end({ items: before, cursor, failure: failureText(error) }),
      );
    },
    [query],
  );
  const reload = useCallback(() => load([], undefined), [load]);
  useEffect(() => {
    reload();
    return () => running.current?.abort();
  }, [reload]);
  if (found.query !== query) return { items: undefined, failure: undefined, more: undefined, reload };
  const { items = [], cursor, failure } = found;
  const hasMore = cursor !== undefined && !isLoading;
  return { items, failure, more: hasMore ? () => load(items, cursor) : undefined, reload };
}

/** Adds a page to the items before it. The service may send an item twice. */
function joined(before: readonly Item[], { items }: Page): readonly Item[] {
  const byPath = new Map(before.map((item) => [item.path, item]));
  for (const item of items) byPath.set(item.path, { ...item, name: nameOf(item.path) });
  return [...byPath.values()];
}
