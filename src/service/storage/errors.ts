import { errorCodeOf } from '../../util/error-code.ts';
import { StorageError } from './storage.ts';

/** The data directory cannot be used; `message` names it, the reason and the remedy. */
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

/** Stored bytes are missing or changed. They are never served; only a backup helps. */
export class DamagedBlockError extends Error {
  override readonly name = 'DamagedBlockError';

  constructor(
    readonly hash: string,
    readonly why: string,
  ) {
    super(`block ${hash} is damaged: ${why}`);
  }
}

/** Returns the refusal for a missing entry; `side` says which of two paths. */
export function notFound(side?: 'from' | 'to'): StorageError {
  return new StorageError({ kind: 'lookup', tag: 'not_found' }, side);
}

/** Returns the refusal for a path that is taken. */
export function conflict(tag: 'file' | 'folder' | 'file_ancestor', side?: 'from' | 'to'): StorageError {
  return new StorageError({ kind: 'conflict', tag }, side);
}

/** Returns the refusal for a full disk or a namespace at its limit. */
export function insufficientSpace(): StorageError {
  return new StorageError({ kind: 'write', tag: 'insufficient_space' });
}

/** Error codes of the file system, of SQLite and of PostgreSQL for a full disk or an exhausted disk quota. */
const OUT_OF_SPACE = new Set(['ENOSPC', 'EDQUOT', 'SQLITE_FULL', '53100']);

/** Returns whether a failure of the file system or of a database is a full disk. */
export function isOutOfSpace(failure: unknown): boolean {
  return OUT_OF_SPACE.has(errorCodeOf(failure));
}

/** Returns the refusal for a full disk when `failure` is one; otherwise `failure`. */
export function asRefusal(failure: unknown): unknown {
  return isOutOfSpace(failure) ? insufficientSpace() : failure;
}
