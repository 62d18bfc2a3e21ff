import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { errorCodeOf } from '../../util/error-code.ts';
import { DataDirectoryError } from './errors.ts';

/** The file that marks a data directory into which a service is being copied. It is removed at the end of the copy. */
export const COPY_MARK = 'unfinished-copy.json';

/** Which copy a target belongs to. */
export interface CopyMark {
  /** The tag of the service that is copied. */
  readonly tag: string;
  /** Tells this copy from all others; the names of its blocks end with it. */
  readonly copyId: string;
}

/** Returns the mark in a data directory; `undefined` if no copy is unfinished there. */
export function copyMarkIn(dataDirectory: string): CopyMark | undefined {
  try {
    return parsedMark(readFileSync(join(dataDirectory, COPY_MARK), 'utf8'));
  } catch (failure) {
    if (errorCodeOf(failure) === 'ENOENT' || errorCodeOf(failure) === 'ENOTDIR') return undefined;
    throw failure;
  }
}

/** Parses a mark. One that cannot be read belongs to no copy. */
export function parsedMark(text: string): CopyMark {
  try {
    const { tag, copyId } = JSON.parse(text) as Partial<Record<keyof CopyMark, unknown>>;
    return { tag: String(tag), copyId: String(copyId) };
  } catch {
    return { tag: '', copyId: '' };
  }
}

/** Throws `DataDirectoryError` for a data directory into which a service is being copied. */
export function expectFinished(dataDirectory: string): void {
  if (copyMarkIn(dataDirectory))
    throw new DataDirectoryError(
      'unusable',
      `${dataDirectory} has an unfinished copy of a service: end it with the davgate service copy that began it, or remove the folder`,
    );
}
