/** Every way in which work on a drive can fail, in the words of a file system. */
export const FAULTS = [
  /** Nothing there, and the service said so. */
  'not-found',
  /** The folder that should hold it is not there. */
  'parent-missing',
  /** Something is there already. */
  'exists',
  'not-a-folder',
  'is-a-folder',
  /** It is not the revision that the caller named. */
  'changed',
  /** The account may not. */
  'forbidden',
  /** The service does not take this name. */
  'bad-name',
  /** A folder cannot go into itself, nor anything onto itself. */
  'into-itself',
  'too-large',
  'too-many',
  'no-space',
  /** The body ended early or was not what its sender announced: nothing was written. */
  'incomplete',
  /** The body does not have the checksum that its sender gave: nothing was written. */
  'checksum',
  /** The service is limiting or refusing for now. */
  'busy',
  /** The service cannot be reached. */
  'offline',
  /** The service refuses our token. */
  'unauthorized',
  /** The service cannot do this at all, or refuses these link settings. */
  'unsupported',
  /** The service said something that we do not understand, or stored bytes are damaged. */
  'broken',
] as const;

export type Fault = (typeof FAULTS)[number];

/** A failure of the drive; `message` is fit to be shown to the person who asked. */
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
