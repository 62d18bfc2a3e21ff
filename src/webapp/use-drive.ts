import { useEffect, useState } from 'preact/hooks';
import { parentOf } from './paths.ts';
import { announceSession, driveInfo, firstInfo, type Place } from './session.ts';

/** What the gateway says about the drive. */
export interface Drive {
  /** The name of the user who has logged in; `undefined` on a drive without a login. */
  readonly user: string | undefined;
  /** Whether the user signed in on the page, and so can sign out. */
  readonly hasSession: boolean;
  /** Whether writes may wait for the storage service. */
  readonly keepsWrites: boolean;
  /** Whether the user can make app passwords. */
  readonly hasAppPasswords: boolean;
  /** Whether the user can make links by which others send files. */
  readonly hasUploadLinks: boolean;
  /** The folders below which the user may change everything or only read, and deletions can be undone or not. */
  readonly places: readonly Place[];
}

/** Returns whether the user may add, change and remove what lies in `folder`. */
export function mayChange(drive: Drive, folder: string): boolean {
  return placeAround(drive, folder)?.isReadOnly === false;
}

/** Returns whether the user may change, move and remove the file or folder at `path`. */
export function mayChangeItem(drive: Drive, path: string): boolean {
  const isLimited = drive.places.some(
    (place) => place.isReadOnly && slashed(place.path).startsWith(slashed(path)),
  );
  return mayChange(drive, parentOf(path)) && !isLimited;
}

/** Returns whether `folder` is read-only for the user. The folder above several drives is not: nobody can change it. */
export function mayOnlyRead(drive: Drive, folder: string): boolean {
  return placeAround(drive, folder)?.isReadOnly === true;
}

/** Returns whether the deletion of what lies at `path`, or in that folder, can be undone. */
export function keepsDeleted(drive: Drive, path: string): boolean {
  return placeAround(drive, path)?.keepsDeleted === true;
}

/** Returns the place with the longest path that contains `folder`. */
function placeAround({ places }: Drive, folder: string): Place | undefined {
  const around = places.filter(({ path }) => slashed(folder).startsWith(slashed(path)));
  return around.sort((one, other) => other.path.length - one.path.length)[0];
}

/** The service does not tell the letter case of names apart. */
function slashed(path: string): string {
  return `${path.replace(/\/$/, '')}/`.toLowerCase();
}

/**
 * Until the answer, the page deletes nothing for good: a DELETE that must be recoverable is so in each drive. Most users may
 * change their drive, and buttons that appear late would jump.
 */
const UNKNOWN: Drive = {
  user: undefined,
  hasSession: false,
  keepsWrites: false,
  hasAppPasswords: false,
  hasUploadLinks: false,
  places: [{ path: '/', isReadOnly: false, keepsDeleted: true }],
};

/** How long the page waits before it asks again, in ms. */
const ASK_AGAIN_MS = 5_000;

/** Asks about the drive until there is an answer. */
export function useDrive(): Drive {
  const [drive, setDrive] = useState<Drive>(UNKNOWN);
  useEffect(() => {
    // The page works without the answer.
    const askDrive = () => void driveInfo().catch(() => undefined);
    const timer = setInterval(askDrive, ASK_AGAIN_MS);
    addEventListener('online', askDrive);
    askDrive();
    void firstInfo.then(({ user, csrfToken, ...known }) => {
      clearInterval(timer);
      removeEventListener('online', askDrive);
      setDrive({ ...known, user: user ?? undefined, hasSession: csrfToken !== undefined });
      if (csrfToken !== undefined) announceSession();
    });
  }, []);
  return drive;
}
