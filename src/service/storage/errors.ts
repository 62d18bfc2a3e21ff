import { StorageError } from './storage.ts';

/** The data directory cannot be used; `message` names it, says why and what to do. */
export class DataDirectoryError extends Error {
  override readonly name = 'DataDirectoryError';

  constructor(
    readonly reason: 'in-use' | 'unusable' | 'newer' | 'damaged',
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** Bytes at rest are gone or changed. They are never served; a backup is the only cure. */
export class DamagedBlockError extends Error {
  override readonly name = 'DamagedBlockError';

  constructor(
    readonly hash: string,
    readonly why: string,
  ) {
    super(`block ${hash} is damaged: ${why}`);
  }
}

/** Nothing is there; `side` tells of which of two paths. */
export function notFound(side?: 'from' | 'to'): StorageError {
  return new StorageError({ kind: 'lookup', tag: 'not_found' }, side);
}

/** Something else is there already. */
export function conflict(tag: 'file' | 'folder' | 'file_ancestor', side?: 'from' | 'to'): StorageError {
  return new StorageError({ kind: 'conflict', tag }, side);
}

/** The disk is full, or the namespace at its limit. */
export function insufficientSpace(): StorageError {
  return new StorageError({ kind: 'write', tag: 'insufficient_space' });
}

/** Out of disk or of a disk quota: what the file system and SQLite say of it. */
const OUT_OF_SPACE = new Set(['ENOSPC', 'EDQUOT', 'SQLITE_FULL']);

/** `failure`, or the refusal that stands for it when the disk is full. */
export function asRefusal(failure: unknown): unknown {
  return OUT_OF_SPACE.has(codeOf(failure)) ? insufficientSpace() : failure;
}

/** The code of a failure of Node's or SQLite's; `''` when it has none. */
export function codeOf(failure: unknown): string {
  return failure instanceof Error && 'code' in failure ? String(failure.code) : '';
}
