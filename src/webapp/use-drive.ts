import { useEffect, useState } from 'preact/hooks';
import { ask } from './gateway.ts';

/** What the gateway says about the drive. */
export interface Drive {
  /** The name of the user who has logged in; `undefined` on a drive without a login. */
  readonly user: string | undefined;
  /** Whether a deletion can be undone. */
  readonly keepsDeleted: boolean;
}

const UNKNOWN: Drive = { user: undefined, keepsDeleted: false };

/** Asks about the drive. Until the answer, nothing is promised. */
export function useDrive(): Drive {
  const [drive, setDrive] = useState<Drive>(UNKNOWN);
  useEffect(() => {
    const ended = new AbortController();
    ask<Omit<Drive, 'user'> & { readonly user: string | null }>('drive', {}, ended.signal).then(
      ({ user, ...known }) => setDrive({ ...known, user: user ?? undefined }),
      // The page works without the answer.
      () => undefined,
    );
    return () => ended.abort();
  }, []);
  return drive;
}
