import { useEffect, useState } from 'preact/hooks';
import { announceSession, driveInfo, type Place } from './session.ts';

/** What the gateway says about the drive. */
export interface Drive {
  /** The name of the user who has logged in; `undefined` on a drive without a login. */
  readonly user: string | undefined;
  /** Whether the user signed in on the page, and so can sign out. */
  readonly hasSession: boolean;
  /** Whether a deletion can be undone. */
  readonly keepsDeleted: boolean;
  /** Whether writes may wait for the storage service. */
  readonly keepsWrites: boolean;
  /** Whether the user can make app passwords. */
  readonly hasAppPasswords: boolean;
  /** The folders below which the user may change everything, or only read. */
  readonly places: readonly Place[];
}

/** Returns whether the user may add, change and remove what lies in `folder`. */
export function mayChange({ places }: Drive, folder: string): boolean {
  return places.some(({ path, isReadOnly }) => !isReadOnly && `${folder}/`.startsWith(slashed(path)));
}

/** Returns whether `folder` is read-only for the user. The folder above several drives is not: nobody can change it. */
export function mayOnlyRead(drive: Drive, folder: string): boolean {
  const isInside = drive.places.some(({ path }) => `${folder}/`.startsWith(slashed(path)));
  return isInside && !mayChange(drive, folder);
}

function slashed(path: string): string {
  return path.endsWith('/') ? path : `${path}/`;
}

/** Until the answer, no undo is promised; most users may change their drive, and buttons that appear late would jump. */
const UNKNOWN: Drive = {
  user: undefined,
  hasSession: false,
  keepsDeleted: false,
  keepsWrites: false,
  hasAppPasswords: false,
  places: [{ path: '/', isReadOnly: false }],
};

/** Asks about the drive. */
export function useDrive(): Drive {
  const [drive, setDrive] = useState<Drive>(UNKNOWN);
  useEffect(() => {
    driveInfo().then(
      ({ user, csrfToken, ...known }) => {
        setDrive({ ...known, user: user ?? undefined, hasSession: csrfToken !== undefined });
        if (csrfToken !== undefined) announceSession();
      },
      // The page works without the answer.
      () => undefined,
    );
  }, []);
  return drive;
}
