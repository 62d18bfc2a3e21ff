import { useCallback, useMemo } from 'preact/hooks';
import { type Item, send } from './dav.ts';
import { ask } from './gateway.ts';
import { addressOf } from './paths.ts';
import { useAnswer } from './use-answer.ts';

/** A lock as the gateway's `locks` describes it. */
export interface Lock {
  readonly path: string;
  readonly depth: '0' | 'infinity';
  readonly scope: 'exclusive' | 'shared';
  /** What the program that took it says about its owner, as XML. */
  readonly ownerXml: string;
  /** The user who took it; empty on a drive without a login. */
  readonly user: string;
  readonly expiresMs: number;
  /** Present for a lock of this user. */
  readonly token?: string;
}

export interface Locks {
  /** Returns the locks on an item, also those of a locked folder above it. */
  readonly on: (item: Item) => readonly Lock[];
  readonly reload: () => void;
}

const NONE: readonly Lock[] = [];

/** Asks for the locks in `folder`. Without an answer no lock is shown, and the drive still enforces all of them. */
export function useLocks(folder: string): Locks {
  const load = useCallback(
    (signal: AbortSignal) => ask<{ readonly locks: readonly Lock[] }>('locks', { path: folder }, signal),
    [folder],
  );
  const { answer, reload } = useAnswer(load);
  const on = useMemo(() => {
    const byPath = new Map<string, readonly Lock[]>();
    const above: Lock[] = [];
    for (const lock of answer?.locks ?? []) {
      const key = lock.path.toLowerCase();
      byPath.set(key, [...(byPath.get(key) ?? []), lock]);
      if (lock.depth === 'infinity' && isWithin(folder, key)) above.push(lock);
    }
    return ({ path }: Item) => {
      const own = byPath.get(path.toLowerCase()) ?? NONE;
      return above.length === 0 ? own : [...own, ...above];
    };
  }, [answer, folder]);
  return { on, reload };
}

/** Returns the owner in words: the user, and the text of the program. */
export function ownerOf({ ownerXml, user }: Lock): string {
  const said = new DOMParser().parseFromString(`<owner>${ownerXml}</owner>`, 'application/xml');
  const isXml = said.getElementsByTagName('parsererror').length === 0;
  const text = (isXml ? (said.documentElement.textContent ?? '') : '').trim();
  if (text === '' || text === user) return user;
  return user === '' ? text : `${user} (${text})`;
}

/** Ends a lock of this user. Throws `DavFailure`. */
export async function unlock({ path, token = '' }: Lock, kind: Item['kind']): Promise<void> {
  await send('UNLOCK', addressOf(path, kind), { headers: { 'Lock-Token': `<${token}>` } });
}

function isWithin(path: string, key: string): boolean {
  const below = path.toLowerCase();
  return key === '/' || below === key || below.startsWith(`${key}/`);
}
