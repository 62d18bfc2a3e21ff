import { useCallback, useEffect, useState } from 'preact/hooks';
import { failureText } from './folder.ts';
import { ask, call } from './gateway.ts';

/** A link that shows a file or folder to everyone who has it. */
export interface SharedLink {
  readonly url: string;
  readonly visibility: 'public' | 'password';
  /** Milliseconds since 1970. */
  readonly expiresMs?: number;
}

/** A link, and the file or folder that it shows. */
export interface LinkedItem extends SharedLink {
  readonly kind: 'file' | 'folder';
  readonly path: string;
}

/** What a person has chosen for a link. What is absent stays as it is. */
export interface LinkChange {
  /** `''` removes the password. */
  readonly password?: string;
  /** A day as `2030-01-31`, at the end of which the link ends; `''` removes the end. */
  readonly lastDay?: string;
}

/** Makes the link of `path`. Throws `DavFailure` 409 when it has one. */
export function share(path: string, { password = '', lastDay = '' }: LinkChange): Promise<SharedLink> {
  return call('share', { path, password, expires: lastDay && endOf(lastDay) });
}

/** Throws `DavFailure` 404 when the link is gone. */
export function changeLink(path: string, url: string, change: LinkChange): Promise<SharedLink> {
  const { password, lastDay } = change;
  return call('change-link', {
    path,
    url,
    ...(password !== undefined && (password === '' ? { visibility: 'public' } : { password })),
    ...(lastDay !== undefined && { expires: lastDay === '' ? 'never' : endOf(lastDay) }),
  });
}

/** Revokes the link. Throws `DavFailure` 404 when it is gone. */
export async function unshare(path: string, url: string): Promise<void> {
  await call('unshare', { path, url });
}

/** Returns the day of a time in the browser's time zone, as a date field has it. */
export function dayOf(ms: number): string {
  const date = new Date(ms);
  const [year, month, day] = [date.getFullYear(), date.getMonth() + 1, date.getDate()];
  return [String(year).padStart(4, '0'), ...[month, day].map((part) => String(part).padStart(2, '0'))].join(
    '-',
  );
}

/** Returns the last second of a day in the browser's time zone, as the gateway takes it. */
export function endOf(day: string): string {
  return new Date(`${day}T23:59:59`).toISOString();
}

interface Links {
  /** `undefined` until the first answer. */
  readonly links: readonly LinkedItem[] | undefined;
  /** Why they cannot be shown. */
  readonly failure: string | undefined;
  /** Shows other links from now on, without asking. */
  readonly show: (links: readonly LinkedItem[]) => void;
  readonly reload: () => void;
}

/** Asks for the links of `path`, or without one for those of the whole drive. */
export function useLinks(path?: string): Links {
  const [shown, setShown] = useState<{ links?: readonly LinkedItem[]; failure?: string }>({});
  const [round, setRound] = useState(0);
  useEffect(() => {
    const ended = new AbortController();
    const { signal } = ended;
    const values = path === undefined ? {} : { path };
    ask<{ readonly links: readonly LinkedItem[] }>('links', values, signal).then(
      ({ links }) => !signal.aborted && setShown({ links }),
      (error: unknown) => !signal.aborted && setShown({ failure: failureText(error) }),
    );
    return () => ended.abort();
  }, [path, round]);
  const show = useCallback((links: readonly LinkedItem[]) => setShown({ links }), []);
  const reload = useCallback(() => setRound((before) => before + 1), []);
  return { links: shown.links, failure: shown.failure, show, reload };
}
