import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { DavFailure, type Item, list } from './dav.ts';
import { t } from './messages.ts';
import { addressOf, nameOf, pathOfAddress } from './paths.ts';

/** The folder that the page shows, by its address. */
export function usePath(): readonly [path: string, open: (path: string) => void] {
  const [path, setPath] = useState(() => pathOfAddress(location.pathname));
  useEffect(() => {
    const back = () => setPath(pathOfAddress(location.pathname));
    addEventListener('popstate', back);
    return () => removeEventListener('popstate', back);
  }, []);
  useEffect(() => {
    document.title = nameOf(path) || t('drive');
  }, [path]);
  const open = useCallback((to: string) => {
    history.pushState(undefined, '', addressOf(to, 'folder'));
    setPath(to);
  }, []);
  return [path, open];
}

export interface Folder {
  /** `undefined` until the first answer. */
  readonly items: readonly Item[] | undefined;
  /** Why the folder cannot be shown, or why its list may be out of date. */
  readonly failure: string | undefined;
  readonly reload: () => void;
  /** Lists it again, after a listing that is under way: what changes all the time must not keep it from ending. */
  readonly refresh: () => void;
}

interface Shown {
  readonly path: string;
  readonly items?: readonly Item[];
  readonly failure?: string;
}

/** Lists the folder at `path`, again when the page is shown after it was hidden. */
export function useFolder(path: string): Folder {
  const [shown, setShown] = useState<Shown>({ path });
  const running = useRef<AbortController>(null);
  const isOutdated = useRef(false);
  const wanted = useRef(path);
  wanted.current = path;
  const reload = useCallback(() => {
    // Work that began in another folder asks for that one, and must not stop the listing of this one.
    if (wanted.current !== path) return;
    running.current?.abort();
    const controller = new AbortController();
    running.current = controller;
    isOutdated.current = false;
    const { signal } = controller;
    const end = (show: (before: Shown) => Shown) => {
      if (signal.aborted) return;
      running.current = null;
      setShown(show);
      if (isOutdated.current) reload();
    };
    list(path, signal).then(
      (items) => end(() => ({ path, items })),
      (error: unknown) => end((before) => failed(before, path, error)),
    );
  }, [path]);
  const refresh = useCallback(() => {
    if (running.current) isOutdated.current = true;
    else reload();
  }, [reload]);
  useEffect(() => {
    reload();
    const look = () => document.visibilityState === 'visible' && refresh();
    document.addEventListener('visibilitychange', look);
    return () => {
      document.removeEventListener('visibilitychange', look);
      running.current?.abort();
      running.current = null;
    };
  }, [reload, refresh]);
  const isCurrent = shown.path === path;
  return {
    items: isCurrent ? shown.items : undefined,
    failure: isCurrent ? shown.failure : undefined,
    reload,
    refresh,
  };
}

/** Returns the state after a failed listing: the old list, unless the folder is gone. */
function failed({ path: before, items }: Shown, path: string, error: unknown): Shown {
  const isGone = error instanceof DavFailure && (error.status === 404 || error.status === 409);
  const failure = failureText(error);
  return before === path && items && !isGone ? { path, items, failure } : { path, failure };
}

/** Returns what a person should read about a failure. */
export function failureText(error: unknown): string {
  if (error instanceof DavFailure && error.status === 0) return t('offline');
  if (error instanceof DavFailure && error.status === 423) return t('locked');
  if (error instanceof DavFailure && error.status === 507) return t('full');
  return error instanceof Error ? error.message : String(error);
}
