import type { Path } from '../util/path.ts';

/** A link by which people without a login send files into a folder. */
export interface UploadLink {
  /** Names it in lists and for its end. Not a secret. */
  readonly id: string;
  /** The user who has made it; `''` on a drive without users. */
  readonly user: string;
  /** SHA-256 of the token in its address: the token's many random bits cannot be guessed. */
  readonly tokenHash: string;
  /** What senders read. */
  readonly label: string;
  /** The folder, as the user sees it. */
  readonly path: Path;
  /** Absent: no password. */
  readonly passwordHash?: string;
  /** Milliseconds since 1970. */
  readonly createdMs: number;
  /** Absent: without an end. */
  readonly expiresMs?: number;
  /** Maximum size of all files together, in bytes; absent: without a limit. */
  readonly sizeBytesMax?: number;
}

/** An upload link, and the size of the files that came by it, in bytes, with those on their way. */
export interface UsedUploadLink extends UploadLink {
  readonly usedBytes: number;
}

/** The upload links of all users. Durable. */
export interface UploadLinkStore {
  /** Returns a user's, the oldest first. */
  all(user: string): Promise<readonly UsedUploadLink[]>;
  find(tokenHash: string): Promise<UsedUploadLink | undefined>;
  /** Stores a new one; returns `false` if its user has `countMax` already. */
  add(link: UploadLink, countMax: number): Promise<boolean>;
  /** Adds to the used bytes; returns `false`, and adds nothing, if the link is gone or that would exceed its maximum. */
  use(link: UploadLink, bytes: number): Promise<boolean>;
  /** Takes back bytes of a file that was not stored. */
  takeBack(link: UploadLink, bytes: number): Promise<void>;
  /** Removes one; returns whether it was there. */
  remove(user: string, id: string): Promise<boolean>;
}
