import { DavFailure, type Item } from './dav.ts';
import { failureText } from './folder.ts';
import { addressOfFunction, ask, call } from './gateway.ts';
import { t } from './messages.ts';

/** A version of a file, as the gateway's function `versions` describes it. */
export interface Version {
  readonly rev: string;
  readonly sizeBytes: number;
  /** When it was stored, in ms since 1970. */
  readonly committedMs: number;
  readonly isCurrent: boolean;
}

interface Versions {
  /** Newest first. */
  readonly versions: readonly Version[];
  /** Whether there are older ones. */
  readonly hasMore: boolean;
}

/** A file or folder that was deleted. */
export interface Deleted extends Item {
  /** Absent for a folder. In ms since 1970. */
  readonly deletedMs?: number;
}

interface Trash {
  readonly items: readonly Deleted[];
  /** How many more there are. */
  readonly leftOut: number;
}

/** Returns the versions of a file. Throws `DavFailure`. */
export function versionsOf(path: string, signal: AbortSignal): Promise<Versions> {
  return ask('versions', { path }, signal);
}

/** Returns the address of the bytes of a version. */
export function addressOfVersion(path: string, rev: string): string {
  return addressOfFunction('version', { path, rev });
}

/** Makes a version the current one. Throws `DavFailure`. */
export function restoreVersion(path: string, rev: string): Promise<unknown> {
  return call('restore', { path, rev });
}

/** Returns what was deleted from a folder. Throws `DavFailure`. */
export function trashOf(folder: string, signal: AbortSignal): Promise<Trash> {
  return ask('trash', { path: folder }, signal);
}

/** Brings back what was deleted at `path`. Throws `DavFailure`. */
export function undelete(path: string): Promise<unknown> {
  return call('undelete', { path });
}

/** Returns what a person should read when `name` cannot be restored. */
export function restoreFailureText(name: string, error: unknown): string {
  const status = error instanceof DavFailure ? error.status : 0;
  if (status === 404) return t('nothingToRestore', name);
  if (status === 412) return t('thereAgain', name);
  if (status === 423) return t('inUse', name);
  return t('failedTo', name, failureText(error));
}
