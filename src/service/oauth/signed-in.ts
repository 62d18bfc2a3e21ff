/** A sign-in of a browser on the pages of `/oauth2/authorize`. */
export interface SignedIn {
  readonly accountId: string;
  /** Hash at the time of signing in: a changed password ends the sign-in. */
  readonly passwordHash: Uint8Array;
  /** The query of the request for which the password was given; empty once that is answered. */
  readonly signedInFor: string;
  readonly expiresMs: number;
}

/** Maximum number of browsers signed in at a time; beyond it the oldest sign-in is dropped. */
export const SIGNED_IN_MAX = 10_000;

/** The sign-ins, each under an id that only its browser knows. */
export interface SignedInBrowsers {
  add(id: string, signedIn: SignedIn): Promise<void>;
  /** Returns `undefined` for an unknown or expired one. */
  find(nowMs: number, id: string): Promise<SignedIn | undefined>;
  /** Ends a sign-in that was for one request only. */
  spend(id: string): Promise<void>;
  remove(id: string): Promise<void>;
  /** Forgets up to `limit` expired ones. Returns how many. */
  forgetOld(nowMs: number, limit: number): Promise<number>;
}
