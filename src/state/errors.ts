/** Another process keeps its state in the same directory; two at once would not see each other's locks. */
export class StateInUse extends Error {
  override readonly name = 'StateInUse';

  constructor(readonly directory: string) {
    super(`another davgate is using ${directory}; stop that one, or give this one its own --data-dir`);
  }
}

/** The state cannot be kept in this directory, or in a Redis that is full; `message` says why and what to do. */
export class StateUnwritable extends Error {
  override readonly name = 'StateUnwritable';

  constructor(
    /** Or the address of Redis, without its password. */
    readonly directory: string,
    reason: string,
    cause?: unknown,
  ) {
    super(`cannot keep state in ${directory}: ${reason}`, { cause });
  }
}

/** State or journal are about the files of another account, or of another folder; `message` says whose and what to do. */
export class OtherOwner extends Error {
  override readonly name = 'OtherOwner';
}

/** The Redis that keeps the state does not do its part; `message` names it, without its password, and what to do. */
export class StateUnavailable extends Error {
  override readonly name = 'StateUnavailable';

  constructor(
    /** Without the password. */
    readonly url: string,
    reason: string,
    cause?: unknown,
  ) {
    super(`cannot use the shared state in ${url}: ${reason}`, { cause });
  }
}
