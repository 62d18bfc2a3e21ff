import { ApiError, type ApiFailure } from '../api/errors.ts';
import type { FileEntry } from '../api/remote.ts';

/** The failures of a drive, in the terms of a file system. */
export const FAULTS = [
  /** The service has no such entry. */
  'not-found',
  /** The parent folder does not exist. */
  'parent-missing',
  /** The target exists already. */
  'exists',
  'not-a-folder',
  'is-a-folder',
  /** The file does not have the revision that the caller named. */
  'changed',
  /** The account may not change this entry. */
  'forbidden',
  /** The account, the app or the token may never do this. */
  'not-entitled',
  /** The service does not accept this name. */
  'bad-name',
  /** A folder cannot be moved into itself, nor anything onto itself. */
  'into-itself',
  'too-large',
  'too-many',
  'no-space',
  /** The user's folder may not grow any further. */
  'over-quota',
  /** The body ended early or had another length than announced: nothing was written. */
  'incomplete',
  /** The body does not match the client's checksum: nothing was written. */
  'checksum',
  /** The service limits or refuses calls for now. */
  'busy',
  /** The service cannot be reached. */
  'offline',
  /** A proxy or a captive portal answered instead of the service. */
  'intercepted',
  /** The service refuses our token, or the drive's namespace. */
  'unauthorized',
  /** The service cannot do this, or refuses these link settings. */
  'unsupported',
  /** The service's answer makes no sense, or stored bytes are damaged. */
  'broken',
] as const;

export type Fault = (typeof FAULTS)[number];

/** A failure of the drive. Its `message` can be shown to users. */
export class FileError extends Error {
  override readonly name = 'FileError';

  constructor(
    readonly fault: Fault,
    message: string,
    readonly details: { readonly retryAfterMs?: number; readonly cause?: unknown } = {},
  ) {
    super(message, { cause: details.cause });
  }
}

/** The fault for each failure of the service, and the message about `subject`. */
const TABLE: Record<ApiFailure, readonly [fault: Fault, message: (subject: string) => string]> = {
  'not-found': ['not-found', (subject) => `${subject} is not there`],
  'not-file': ['is-a-folder', (subject) => `${subject} is not a file`],
  'not-folder': ['not-a-folder', (subject) => `${subject} is not a folder`],
  'conflict-file': ['exists', (subject) => `there is a file at ${subject} already`],
  'conflict-folder': ['exists', (subject) => `there is a folder at ${subject} already`],
  'conflict-ancestor': ['parent-missing', (subject) => `${subject} would lie in a file`],
  'malformed-path': ['bad-name', (subject) => `the storage service does not take the name of ${subject}`],
  'disallowed-name': ['bad-name', (subject) => `the storage service does not take the name of ${subject}`],
  'no-permission': ['forbidden', (subject) => `the account may not change ${subject}`],
  restricted: ['forbidden', (subject) => `the storage service does not hand out ${subject}`],
  locked: ['forbidden', (subject) => `somebody has locked ${subject} at the storage service`],
  'insufficient-space': ['no-space', (subject) => `the account has no room for ${subject}`],
  'too-large': ['too-large', (subject) => `${subject} is larger than the storage service takes`],
  'too-many-files': ['too-many', (subject) => `${subject} holds more files than the service handles at once`],
  'into-itself': ['into-itself', (subject) => `${subject} cannot go into itself`],
  incomplete: [
    'incomplete',
    (subject) =>
      `the body of ${subject} is not as long as announced; nothing was written, send the file again`,
  ],
  'hash-mismatch': [
    'broken',
    (subject) => `${subject} was damaged on its way to the service; write it again`,
  ],
  'incorrect-offset': [
    'broken',
    (subject) => `the parts of ${subject} did not arrive in order; write it again`,
  ],
  'session-gone': ['broken', (subject) => `the service has lost the parts of ${subject}; write it again`],
  reset: ['busy', (subject) => `${subject} changed while it was being listed; try again`],
  range: ['broken', (subject) => `the storage service refuses a range that lies within ${subject}`],
  'link-exists': ['exists', (subject) => `${subject} is shared already`],
  'link-settings': ['unsupported', (subject) => `the account may not share ${subject} with these settings`],
  'link-gone': ['not-found', (subject) => `the link to ${subject} is gone`],
  'revision-gone': ['not-found', (subject) => `the storage service has no such version of ${subject}`],
  'no-thumbnail': ['unsupported', (subject) => `the storage service has no small image of ${subject}`],
  'not-allowed': ['not-entitled', (subject) => `account or token may not do this to ${subject}`],
  unauthorized: ['unauthorized', () => 'the storage service refuses the token of this drive'],
  'wrong-namespace': [
    'unauthorized',
    () => "the storage service no longer serves the namespace of this drive; see davgate's log",
  ],
  'rate-limited': ['busy', () => 'the storage service is limiting calls; try again later'],
  unavailable: ['busy', () => 'the storage service is out of order; try again later'],
  offline: ['offline', () => 'the storage service cannot be reached'],
  foreign: [
    'intercepted',
    () => 'something other than the storage service answered: check the network, its proxy and --api-url',
  ],
  'bad-request': [
    'broken',
    (subject) => `the storage service does not understand what is asked of ${subject}`,
  ],
};

/** Returns the `FileError` for an `ApiError`, and any other error unchanged. */
export function fileErrorOf(error: unknown, subject: string): unknown {
  if (!(error instanceof ApiError)) return error;
  const [fault, message] = TABLE[error.failure];
  const { retryAfterMs, summary } = error.details;
  const text = message(subject);
  const reason = fault === 'unsupported' || fault === 'broken' ? summary : undefined;
  return new FileError(fault, reason ? `${text} (${reason})` : text, {
    cause: error,
    ...(retryAfterMs !== undefined && { retryAfterMs }),
  });
}

/**
 * Throws `forbidden` for a file that has no bytes to download. Its size says nothing: taken for an empty file, it would be
 * lost when a program copies it and deletes the original.
 */
export function requireDownloadable({ path, isDownloadable }: FileEntry): void {
  if (isDownloadable === false)
    throw new FileError(
      'forbidden',
      `${path} is a document without bytes; open it on the website of the service`,
    );
}

/** Returns the error for a file whose content was replaced while it was being read. */
export function replaced(path: string): FileError {
  return new FileError('busy', `${path} was replaced at this moment; ask again`);
}
