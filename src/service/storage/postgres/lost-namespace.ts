import { DatabaseAwayError } from '../../postgres/away.ts';

/** A namespace is no longer in the database, as after the promotion of a standby that lacked it. The next call looks again. */
export class LostNamespaceError extends DatabaseAwayError {
  constructor(ns: number) {
    super(`namespace ${ns} is no longer in the database`);
  }
}
