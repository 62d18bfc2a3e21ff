/** A password that a user has made for one program. */
export interface AppPassword {
  /** Names it in lists and for its end. Not a secret. */
  readonly id: string;
  /** What the user calls it. */
  readonly name: string;
  /** SHA-256 of the password: its many random bits cannot be guessed, however fast the hash is. */
  readonly hash: string;
  /** Milliseconds since 1970. */
  readonly createdMs: number;
  /** `undefined`: never. */
  readonly usedMs?: number;
}

/** The app passwords of all users, by the users' names. Durable. */
export interface AppPasswordStore {
  /** Returns a user's, the oldest first. */
  all(user: string): Promise<readonly AppPassword[]>;
  /** Stores a new one; returns `false` if the user has `countMax` already. */
  add(user: string, password: AppPassword, countMax: number): Promise<boolean>;
  /** Notes a use. */
  use(user: string, id: string, usedMs: number): Promise<void>;
  /** Removes one; returns whether it was there. */
  remove(user: string, id: string): Promise<boolean>;
}
