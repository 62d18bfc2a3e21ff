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
  /** Why it cannot be shown. */
  readonly failure: string | undefined;
  readonly reload: () => void;
}

/** Lists the folder at `path`, again when the page is shown after it was hidden. */
export function useFolder(path: string): Folder {
  const [shown, setShown] = useState<{ path: string; items?: readonly Item[]; failure?: string }>({ path });
  const running = useRef<AbortController>(null);
  const wanted = useRef(path);
  wanted.current = path;
  const reload = useCallback(() => {
    // Work that began in another folder asks for that one, and must not stop the listing of this one.
    if (wanted.current !== path) return;
    running.current?.abort();
    const controller = new AbortController();
    running.current = controller;
    const { signal } = controller;
    list(path, signal).then(
      (items) => !signal.aborted && setShown({ path, items }),
      (error: unknown) => !signal.aborted && setShown({ path, failure: failureText(error) }),
    );
  }, [path]);
  useEffect(() => {
    reload();
    const refresh = () => document.visibilityState === 'visible' && reload();
    document.addEventListener('visibilitychange', refresh);
    return () => {
      document.removeEventListener('visibilitychange', refresh);
      running.current?.abort();
    };
  }, [reload]);
  const isCurrent = shown.path === path;
  return {
    items: isCurrent ? shown.items : undefined,
    failure: isCurrent ? shown.failure : undefined,
    reload,
  };
}

/** Returns what a person should read about a failure. */
export function failureText(error: unknown): string {
  if (error instanceof DavFailure && error.status === 0) return t('offline');
  if (error instanceof DavFailure && error.status === 423) return t('locked');
  return error instanceof Error ? error.message : String(error);
}
