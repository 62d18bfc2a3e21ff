/** Another process uses the same data directory. Two processes would not see each other's locks. */
export class StateInUse extends Error {
  override readonly name = 'StateInUse';

  constructor(readonly directory: string) {
    super(`another davgate is using ${directory}; stop it, or start this one with another --data-dir`);
  }
}

/** State cannot be written to this directory, or to a full Redis; `message` says why and what to do. */
export class StateUnwritable extends Error {
  override readonly name = 'StateUnwritable';

  constructor(
    /** The directory, or the address of Redis without its password. */
    readonly directory: string,
    reason: string,
    cause?: unknown,
  ) {
    super(`cannot keep state in ${directory}: ${reason}`, { cause });
  }
}

/** State or journal belong to another account or folder; `message` names it and says what to do. */
export class OtherOwner extends Error {
  override readonly name = 'OtherOwner';
}

/** Redis may forget the state; `message` says what to set. */
export class VolatileState extends Error {
  override readonly name = 'VolatileState';
}

/** Redis, which keeps the state, fails; `message` names it without its password, and says what to do. */
export class StateUnavailable extends Error {
  override readonly name = 'StateUnavailable';

  constructor(
    /** Address without the password. */
    readonly url: string,
    reason: string,
    cause?: unknown,
  ) {
    super(`cannot use the shared state in ${url}: ${reason}`, { cause });
  }
}
