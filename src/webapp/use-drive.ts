import { useEffect, useState } from 'preact/hooks';
import { driveInfo } from './session.ts';

/** What the gateway says about the drive. */
export interface Drive {
  /** The name of the user who has logged in; `undefined` on a drive without a login. */
  readonly user: string | undefined;
  /** Whether the user signed in on the page, and so can sign out. */
  readonly hasSession: boolean;
  /** Whether a deletion can be undone. */
  readonly keepsDeleted: boolean;
}

const UNKNOWN: Drive = { user: undefined, hasSession: false, keepsDeleted: false };

/** Asks about the drive. Until the answer, nothing is promised. */
export function useDrive(): Drive {
  const [drive, setDrive] = useState<Drive>(UNKNOWN);
  useEffect(() => {
    driveInfo().then(
      ({ user, csrfToken, keepsDeleted }) =>
        setDrive({ user: user ?? undefined, hasSession: csrfToken !== undefined, keepsDeleted }),
      // The page works without the answer.
      () => undefined,
    );
  }, []);
  return drive;
}
