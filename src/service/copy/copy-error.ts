/** A service cannot be copied; `message` names the side, the reason and the remedy. */
export class CopyError extends Error {
  override readonly name = 'CopyError';
}

/** The target is not empty, and has no unfinished copy. */
export class NotEmptyError extends CopyError {}
